// One case per verifier branch of the spec operations.
// RUN: hybrid-opt %s -split-input-file -verify-diagnostics

// Sizes of the model.

// expected-error @+1 {{'hybrid.model' op vocab is 0; write a number from 1 to 1048576}}
hybrid.model @vocab vocab(0) width(64) layers(2) {
  hybrid.softmax heads(2) head_dim(32) position(nope)
}

// -----

// expected-error @+1 {{'hybrid.model' op name 'a b\0A' is not supported; write letters, digits, '_', '-' and '.'}}
hybrid.model @"a b\0A" vocab(256) width(64) layers(2) {
  hybrid.softmax heads(2) head_dim(32) position(nope)
}

// -----

hybrid.model @clause vocab(256) width(64) layers(2) {
  // expected-error @+1 {{custom op 'hybrid.softmax' has no clause 'colour'; docs/spec-language.md lists what it has}}
  hybrid.softmax heads(2) head_dim(32) position(nope) colour(3)
}

// -----

hybrid.model @attribute vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.softmax' op has no clause 'colour', and nothing reads it as an attribute; remove it}}
  hybrid.softmax heads(2) head_dim(32) position(nope) {colour = 3}
}

// -----

// expected-error @+1 {{'hybrid.model' op width 60 is not supported; write a multiple of 8 from 8 to 1048576}}
hybrid.model @width vocab(256) width(60) layers(2) {
  hybrid.softmax heads(2) head_dim(32) position(nope)
}

// -----

// expected-error @+1 {{'hybrid.model' op layers is -2; write a number from 1 to 4096}}
hybrid.model @layers vocab(256) width(64) layers(-2) {
  hybrid.softmax heads(2) head_dim(32) position(nope)
}

// -----

// expected-error @+1 {{'hybrid.model' op dtype 'f64' is not one that models have; write dtype(f32), dtype(bf16) or dtype(f16)}}
hybrid.model @dtype vocab(256) width(64) layers(2) dtype(f64) {
  hybrid.softmax heads(2) head_dim(32) position(nope)
}

// -----

// expected-error @+1 {{'hybrid.model' op dropout is 1; write a number from 0 to 0.99, such as 0.1}}
hybrid.model @dropout vocab(256) width(64) layers(2) dropout(1) {
  hybrid.softmax heads(2) head_dim(32) position(nope)
}

// -----

// expected-error @+1 {{'hybrid.model' op dropout is -0.5; write a number from 0 to 0.99, such as 0.1}}
hybrid.model @dropout vocab(256) width(64) layers(2) dropout(-0.5) {
  hybrid.softmax heads(2) head_dim(32) position(nope)
}

// -----

// expected-error @+1 {{'hybrid.model' op trained is 1; write a number from 2 to 2147483647}}
hybrid.model @trained vocab(256) width(64) layers(2) trained(1) {
  hybrid.softmax heads(2) head_dim(32) position(nope)
}

// -----

// expected-error @+1 {{'hybrid.model' op epsilon is 0; write a number between 0 and 1, such as 1.0e-5}}
hybrid.model @epsilon vocab(256) width(64) layers(2) epsilon(0) {
  hybrid.softmax heads(2) head_dim(32) position(nope)
}

// -----

// expected-error @+1 {{'hybrid.model' op init_std is -0.02; write a number between 0 and 10, such as 0.02}}
hybrid.model @init_std vocab(256) width(64) layers(2) init_std(-0.02) {
  hybrid.softmax heads(2) head_dim(32) position(nope)
}

// -----

// Body of the model.

// expected-error @+1 {{'hybrid.model' op starts with nothing where its mixers are expected; write a mixer, hybrid.heads, hybrid.mix, hybrid.pattern or hybrid.layers first}}
hybrid.model @empty vocab(256) width(64) layers(2) {
}

// -----

// expected-error @+1 {{'hybrid.model' op starts with hybrid.mlp where its mixers are expected}}
hybrid.model @mlp_first vocab(256) width(64) layers(2) {
  hybrid.mlp swiglu(128)
}

// -----

hybrid.model @two_mixers vocab(256) width(64) layers(2) {
  // expected-note @+1 {{the mixers of the model are given here}}
  hybrid.softmax heads(2) head_dim(32) position(nope)
  // expected-error @+1 {{'hybrid.gla' op stands where only one hybrid.mlp is expected; give layers different mixers with hybrid.mix, hybrid.pattern or hybrid.layers}}
  hybrid.gla heads(2) head_dim(32)
}

// -----

hybrid.model @two_mlps vocab(256) width(64) layers(2) {
  // expected-note @+1 {{the mixers of the model are given here}}
  hybrid.softmax heads(2) head_dim(32) position(nope)
  hybrid.mlp swiglu(128)
  // expected-error @+1 {{'hybrid.mlp' op stands where only one hybrid.mlp is expected}}
  hybrid.mlp swiglu(128)
}

// -----

// GEN-24: ratio 0:0.
hybrid.model @ratio vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.mix' op ratio 0 : 0 must have two numbers from 1 to 4096; for layers of one kind write their mixer without hybrid.mix}}
  hybrid.mix ratio(0 : 0) {
    hybrid.gla heads(2) head_dim(32)
    hybrid.softmax heads(2) head_dim(32) position(nope)
  }
}

// -----

hybrid.model @pure vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.mix' op ratio 3 : 0 must have two numbers from 1}}
  hybrid.mix ratio(3 : 0) {
    hybrid.gla heads(2) head_dim(32)
    hybrid.softmax heads(2) head_dim(32) position(nope)
  }
}

// -----

hybrid.model @offset vocab(256) width(64) layers(4) {
  // expected-error @+1 {{'hybrid.mix' op offset 4 is outside the period of 4 layers that ratio 3 : 1 makes; write an offset from 0 to 3}}
  hybrid.mix ratio(3 : 1) offset(4) {
    hybrid.gla heads(2) head_dim(32)
    hybrid.softmax heads(2) head_dim(32) position(nope)
  }
}

// -----

hybrid.model @three vocab(256) width(64) layers(4) {
  // expected-error @+1 {{'hybrid.mix' op has 1 mixers where ratio 3 : 1 needs 2; write the biased one, then the full one (more kinds: hybrid.pattern)}}
  hybrid.mix ratio(3 : 1) {
    hybrid.gla heads(2) head_dim(32)
  }
}

// -----

hybrid.model @mix_entry vocab(256) width(64) layers(4) {
  // expected-error @+1 {{'hybrid.mix' op holds 'hybrid.mlp' where a mixer, hybrid.heads or hybrid.swla is expected; move it out}}
  hybrid.mix ratio(3 : 1) {
    hybrid.gla heads(2) head_dim(32)
    hybrid.mlp swiglu(64)
  }
}

// -----

// CFG-13: a leftover rule of `error` violated.
// expected-note @+1 {{the model has layers(24)}}
hybrid.model @leftover vocab(256) width(64) layers(24) {
  // expected-error @+1 {{'hybrid.mix' op leaves 24 of 24 layers over after whole periods of 25, and leftover(error) forbids that; write layers(25) or leftover(biased) or leftover(last_full)}}
  hybrid.mix ratio(24 : 1) leftover(error) {
    hybrid.gla heads(2) head_dim(32)
    hybrid.softmax heads(2) head_dim(32) position(nope)
  }
}

// -----

hybrid.model @leftover_word vocab(256) width(64) layers(24) {
  // expected-error @+1 {{unknown word 'full' for mix_leftover; write one of biased, last_full, error}}
  hybrid.mix ratio(24 : 1) leftover(full) {
    hybrid.gla heads(2) head_dim(32)
    hybrid.softmax heads(2) head_dim(32) position(nope)
  }
}

// -----

// Patterns and lists.

hybrid.model @pattern_entry vocab(256) width(64) layers(4) {
  hybrid.pattern "LG" {
    // expected-error @+1 {{'hybrid.gla' op stands where a hybrid.named is expected; write hybrid.named "..." { } around it}}
    hybrid.gla heads(2) head_dim(32)
  }
}

// -----

hybrid.model @pattern_twice vocab(256) width(64) layers(4) {
  hybrid.pattern "LL" {
    // expected-note @+1 {{the first is here}}
    hybrid.named "L" {
      hybrid.gla heads(2) head_dim(32)
    }
    // expected-error @+1 {{'hybrid.named' op gives the name 'L' a second time; rename one}}
    hybrid.named "L" {
      hybrid.gdn heads(2) head_dim(32)
    }
  }
}

// -----

hybrid.model @pattern_empty vocab(256) width(64) layers(4) {
  // expected-error @+1 {{'hybrid.pattern' op has no letters; write one letter per layer}}
  hybrid.pattern "" {
  }
}

// -----

// CFG-04: an unknown name, with its index.
hybrid.model @pattern_letter vocab(256) width(64) layers(4) {
  // expected-error @+1 {{'hybrid.pattern' op has the unknown letter 'X' at index 2; the body names 'G', 'L', so change it or add hybrid.named "X"}}
  hybrid.pattern "LLXG" {
    hybrid.named "L" {
      hybrid.gla heads(2) head_dim(32)
    }
    hybrid.named "G" {
      hybrid.softmax heads(2) head_dim(32) position(nope)
    }
  }
}

// -----

hybrid.model @pattern_long vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.pattern' op has 3 letters for a model of 2 layers; shorten the pattern or write layers(3)}}
  hybrid.pattern "LLL" {
    hybrid.named "L" {
      hybrid.gla heads(2) head_dim(32)
    }
  }
}

// -----

// expected-note @+1 {{the model has layers(5)}}
hybrid.model @pattern_leftover vocab(256) width(64) layers(5) {
  // expected-error @+1 {{'hybrid.pattern' op leaves 1 of 5 layers over after whole repetitions of 2, and leftover(error) forbids that; write layers(6) or leftover(cut) or leftover(last)}}
  hybrid.pattern "LG" leftover(error) {
    hybrid.named "L" {
      hybrid.gla heads(2) head_dim(32)
    }
    hybrid.named "G" {
      hybrid.softmax heads(2) head_dim(32) position(nope)
    }
  }
}

// -----

hybrid.model @pattern_unused vocab(256) width(64) layers(4) {
  hybrid.pattern "LL" {
    hybrid.named "L" {
      hybrid.gla heads(2) head_dim(32)
    }
    // expected-error @+1 {{'hybrid.named' op names 'G', which no layer has; use it or remove it}}
    hybrid.named "G" {
      hybrid.softmax heads(2) head_dim(32) position(nope)
    }
  }
}

// -----

hybrid.model @pattern_name vocab(256) width(64) layers(4) {
  hybrid.pattern "LL" {
    hybrid.named "L" {
      hybrid.gla heads(2) head_dim(32)
    }
    // expected-error @+1 {{'hybrid.named' op is called 'full' in a pattern, where a name is one letter; shorten it or list the layers with hybrid.layers}}
    hybrid.named "full" {
      hybrid.softmax heads(2) head_dim(32) position(nope)
    }
  }
}

// -----

hybrid.model @name_empty vocab(256) width(64) layers(1) {
  hybrid.layers [""] {
    // expected-error @+1 {{'hybrid.named' op has an empty name; write hybrid.named "L"}}
    hybrid.named "" {
      hybrid.gla heads(2) head_dim(32)
    }
  }
}

// -----

hybrid.model @named_two vocab(256) width(64) layers(1) {
  hybrid.layers ["a"] {
    // expected-error @+1 {{'hybrid.named' op holds 2 operations where one mixer is expected}}
    hybrid.named "a" {
      hybrid.gla heads(2) head_dim(32)
      // expected-note @+1 {{the last is 'hybrid.gdn'; groups of heads in one layer are written with hybrid.heads}}
      hybrid.gdn heads(2) head_dim(32)
    }
  }
}

// -----

// CFG-04: a list that is unlike the number of layers.
// expected-note @+1 {{the model has layers(4)}}
hybrid.model @list_length vocab(256) width(64) layers(4) {
  // expected-error @+1 {{'hybrid.layers' op lists 2 layers where the model has 4; write one name per layer}}
  hybrid.layers ["a", "a"] {
    hybrid.named "a" {
      hybrid.gla heads(2) head_dim(32)
    }
  }
}

// -----

hybrid.model @list_name vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.layers' op has the unknown name 'chunked_attention' at index 1; the body names 'a', so change it or add hybrid.named "chunked_attention"}}
  hybrid.layers ["a", "chunked_attention"] {
    hybrid.named "a" {
      hybrid.gla heads(2) head_dim(32)
    }
  }
}

// -----

// Head groups.

hybrid.model @one_group vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.heads' op has 1 groups where two are the least; write one mixer without hybrid.heads}}
  hybrid.heads {
    hybrid.gla heads(2) head_dim(32)
  }
}

// -----

hybrid.model @group_entry vocab(256) width(64) layers(2) {
  hybrid.heads {
    hybrid.gla heads(2) head_dim(32)
    // expected-error @+1 {{'hybrid.swla' op is no group of heads; write a mixer or hybrid.swla in hybrid.heads}}
    hybrid.swla window(8) stride(2) {
    }
  }
}

// -----

hybrid.model @total vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.heads' op groups have 5 heads together, unlike total(8); change a group or write total(5)}}
  hybrid.heads total(8) {
    hybrid.softmax heads(3) head_dim(32) position(nope)
    hybrid.softmax heads(2) head_dim(32) position(rope)
  }
}

// -----

// Bounded history of a recurrence.

hybrid.model @swla_window vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.swla' op window is 0; write a number from 1 to 2147483647}}
  hybrid.swla window(0) stride(4) {
    hybrid.gla heads(2) head_dim(32)
  }
}

// -----

hybrid.model @swla_stride vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.swla' op stride is -4; write a number from 1 to 2147483647}}
  hybrid.swla window(8) stride(-4) {
    hybrid.gla heads(2) head_dim(32)
  }
}

// -----

hybrid.model @swla_divide vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.swla' op stride 1000 does not divide window 4096; write stride(8) or window(5000)}}
  hybrid.swla window(4096) stride(1000) {
    hybrid.gla heads(2) head_dim(32)
  }
}

// -----

hybrid.model @swla_softmax vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.swla' op holds 'hybrid.softmax' where one recurrence is expected}}
  hybrid.swla window(8) stride(4) {
    // expected-note @+1 {{softmax attention has a window of its own; write window(8) on it}}
    hybrid.softmax heads(2) head_dim(32) position(nope)
  }
}

// -----

// Softmax attention.

// GEN-24: heads 0.
hybrid.model @heads vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.softmax' op heads is 0; write a number from 1 to 1024}}
  hybrid.softmax heads(0) head_dim(32) position(nope)
}

// -----

// GEN-24: head dim 2^31.
hybrid.model @head_dim vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.softmax' op head_dim 2147483648 is not supported; write a multiple of 8 from 8 to 256}}
  hybrid.softmax heads(2) head_dim(2147483648) position(nope)
}

// -----

hybrid.model @head_dim_odd vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.softmax' op head_dim 33 is not supported; write a multiple of 8 from 8 to 256}}
  hybrid.softmax heads(2) head_dim(33) position(rope)
}

// -----

// GEN-24: key heads that do not divide eight.
hybrid.model @kv_heads_three vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.softmax' op kv_heads 3 does not divide heads 8; each key head serves an equal number of query heads, so write a divisor of 8}}
  hybrid.softmax heads(8) kv_heads(3) head_dim(32) position(nope)
}

// -----

// ATT-13: six query heads over four key heads.
hybrid.model @kv_heads vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.softmax' op kv_heads 4 does not divide heads 6; each key head serves an equal number of query heads, so write a divisor of 6}}
  hybrid.softmax heads(6) kv_heads(4) head_dim(32) position(nope)
}

// -----

hybrid.model @kv_heads_zero vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.softmax' op kv_heads 0 does not divide heads 8}}
  hybrid.softmax heads(8) kv_heads(0) head_dim(32) position(nope)
}

// -----

// ATT-02: window 0.
hybrid.model @window_zero vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.softmax' op window is 0, and a window counts the token itself; write a number from 1 to 2147483647, or leave it out for all tokens}}
  hybrid.softmax heads(2) head_dim(32) position(nope) window(0)
}

// -----

// GEN-24: window -1.
hybrid.model @window_minus_one vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.softmax' op window is -1, and a window counts the token itself}}
  hybrid.softmax heads(2) head_dim(32) position(nope) window(-1)
}

// -----

// ATT-03: a negative window.
hybrid.model @window_negative vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.softmax' op window is -4, and a window counts the token itself}}
  hybrid.softmax heads(2) head_dim(32) position(nope) window(-4)
}

// -----

hybrid.model @sinks vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.softmax' op sinks is 0; write a number from 1 to 2147483647}}
  hybrid.softmax heads(2) head_dim(32) position(nope) window(4) sinks(0)
}

// -----

hybrid.model @sinks_alone vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.softmax' op sinks(4) without a window changes nothing, all tokens are seen; add window(n) or remove it}}
  hybrid.softmax heads(2) head_dim(32) position(nope) sinks(4)
}

// -----

hybrid.model @position vocab(256) width(64) layers(2) {
  // expected-error @+1 {{unknown word 'alibi' for position; write one of nope, rope}}
  hybrid.softmax heads(2) head_dim(32) position(alibi)
}

// -----

hybrid.model @position_argument vocab(256) width(64) layers(2) {
  // expected-error @+1 {{unknown argument 'theta' of a position; write base = x or dynamic_ntk = x}}
  hybrid.softmax heads(2) head_dim(32) position(rope, theta = 10000)
}

// -----

hybrid.model @position_twice vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'base' is given twice}}
  hybrid.softmax heads(2) head_dim(32) position(rope, base = 10000, base = 500000)
}

// -----

hybrid.model @nope_base vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.softmax' op has position nope with an argument of rope; write position(nope) or position(rope, ...)}}
  hybrid.softmax heads(2) head_dim(32) position(nope, base = 10000)
}

// -----

hybrid.model @base vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.softmax' op rotary base is 1; write a base above 1, such as 10000}}
  hybrid.softmax heads(2) head_dim(32) position(rope, base = 1)
}

// -----

hybrid.model @ntk_factor vocab(256) width(64) layers(2) trained(64) {
  // expected-error @+1 {{'hybrid.softmax' op dynamic_ntk is 0.5; write a factor from 1 to 1000000}}
  hybrid.softmax heads(2) head_dim(32) position(rope, dynamic_ntk = 0.5)
}

// -----

// expected-note @+1 {{the model is here}}
hybrid.model @ntk_length vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.softmax' op uses dynamic_ntk 2 but no trained length is known; write trained(n) on the model}}
  hybrid.softmax heads(2) head_dim(32) position(rope, dynamic_ntk = 2)
}

// -----

hybrid.model @scale_word vocab(256) width(64) layers(2) {
  // expected-error @+1 {{a constant logit scale needs its factor; write logit_scale(constant, factor = x)}}
  hybrid.softmax heads(2) head_dim(32) position(nope) logit_scale(constant)
}

// -----

hybrid.model @scale_argument vocab(256) width(64) layers(2) {
  // expected-error @+1 {{unknown argument 'length' of log_n; write logit_scale(log_n, trained = n)}}
  hybrid.softmax heads(2) head_dim(32) position(nope) logit_scale(log_n, length = 4)
}

// -----

// expected-error @+1 {{'e' follows the number 1; write an exponent behind a fraction, as in 1.0e-5}}
hybrid.model @exponent vocab(256) width(64) layers(2) epsilon(1e-5) {
  hybrid.softmax heads(2) head_dim(32) position(nope)
}

// -----

hybrid.model @scale_factor vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.softmax' op logit scale is 0; write a factor above 0, at most 1000000}}
  hybrid.softmax heads(2) head_dim(32) position(nope) logit_scale(constant, factor = 0)
}

// -----

hybrid.model @scale_is_no_f32 vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.softmax' op logit scale is 1.0e+300; write a factor above 0, at most 1000000}}
  hybrid.softmax heads(2) head_dim(32) position(nope) logit_scale(constant, factor = 1.0e300)
}

// -----

hybrid.model @gate_bias vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.gdn' op gate_bias is -1.0e+300; write a number from -1000000 to 1000000}}
  hybrid.gdn heads(2) head_dim(32) gate_bias(-1.0e300)
}

// -----

hybrid.model @scale_generic vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.softmax' op has a constant logit scale without its factor; write logit_scale(constant, factor = x)}}
  "hybrid.softmax"() <{heads = 2 : i64, head_dim = 32 : i64, position = #hybrid<position nope>, logit_scale = #hybrid<logit_scale constant>}> : () -> ()
}

// -----

hybrid.model @scale_trained vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.softmax' op trained length of log_n is 1; write a number from 2 to 2147483647}}
  hybrid.softmax heads(2) head_dim(32) position(nope) logit_scale(log_n, trained = 1)
}

// -----

// expected-note @+1 {{the model is here}}
hybrid.model @scale_length vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.softmax' op has logit_scale(log_n) but no trained length is known; write logit_scale(log_n, trained = n) or trained(n) on the model}}
  hybrid.softmax heads(2) head_dim(32) position(nope) logit_scale(log_n)
}

// -----

// Recurrences.

hybrid.model @gla_heads vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.gla' op heads is -1; write a number from 1 to 1024}}
  hybrid.gla heads(-1) head_dim(32)
}

// -----

hybrid.model @gla_head_dim vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.gla' op head_dim 264 is not supported; write a multiple of 8 from 8 to 256}}
  hybrid.gla heads(2) head_dim(264)
}

// -----

hybrid.model @gla_value_dim vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.gla' op value_dim 12 is not supported; write a multiple of 8 from 8 to 512}}
  hybrid.gla heads(2) head_dim(32) value_dim(12)
}

// -----

hybrid.model @conv_zero vocab(256) width(64) layers(2) {
  // expected-error @+1 {{convolution width 0 means nothing; write conv(off) for none}}
  hybrid.gdn heads(2) head_dim(32) conv(0)
}

// -----

hybrid.model @conv_width vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.gdn' op convolution width is 1; write a number from 2 to 8}}
  hybrid.gdn heads(2) head_dim(32) conv(1)
}

// -----

hybrid.model @normalizer vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.gla' op gate_normalizer is 0 and divides the log decay; write a number from 1.0e-06 on, such as 16}}
  hybrid.gla heads(2) head_dim(32) gate_normalizer(0)
}

// -----

hybrid.model @gate_rank vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.gla' op gate_rank is 0; write a number from 1 to 1048576}}
  hybrid.gla heads(2) head_dim(32) gate_rank(0)
}

// -----

hybrid.model @delta_net vocab(256) width(64) layers(2) {
  // expected-error @+1 {{'hybrid.delta_net' op head_dim 20 is not supported; write a multiple of 8 from 8 to 256}}
  hybrid.delta_net heads(2) head_dim(20)
}

// -----

hybrid.model @mlp vocab(256) width(64) layers(2) {
  hybrid.gla heads(2) head_dim(32)
  // expected-error @+1 {{'hybrid.mlp' op channels 100 is not supported; write a multiple of 8 from 8 to 1048576}}
  hybrid.mlp swiglu(100)
}

// -----

// A mixer outside a model.
// expected-error @+1 {{'hybrid.gla' op expects parent op to be one of}}
hybrid.gla heads(2) head_dim(32)
