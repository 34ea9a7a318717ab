// Causal attention in bf16: tiles of 128 queries and 128 keys, 16 heads of 128.
// Scores stay unscaled; the scale and log2(e) are one factor of the exponent. Two
// warpgroups of 64 queries take turns to issue products: the scores of the next
// keys, then the values of the last ones, and softmax runs while the values do.
!rows = !tile.view<?x16x128xbf16>
tile.program @softmax_forward_bf16_hopper_128(%q: !rows, %k: !rows, %v: !rows, %table: !tile.view<?x4xi32>, %owner: !tile.view<?xi32>, %o: !rows, %lse: !tile.view<?x16xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (s, 16, l ceildiv 128)> order [parallel, parallel, parallel] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %segment = tile.id 0
  %head = tile.id 1
  %block = tile.id 2
  %begin32 = tile.load_scalar %table[%segment, %c0] : !tile.view<?x4xi32>
  %end32 = tile.load_scalar %table[%segment, %c1] : !tile.view<?x4xi32>
  %begin = arith.index_cast %begin32 : i32 to index
  %end = arith.index_cast %end32 : i32 to index
  %firstQuery = arith.muli %block, %c128 : index
  %row = arith.addi %begin, %firstQuery : index
  %isAny = arith.cmpi slt, %row, %end : index
  scf.if %isAny {
    %queries = tile.load %q[%row, %head, %c0] dims [0, 2] limit(%end) {tile.name = "load_q"} : !rows -> tensor<128x128xbf16>
    %length = arith.subi %end, %begin : index
    %upTo = arith.addi %firstQuery, %c128 : index
    %seen = arith.minsi %length, %upTo : index
    %tiles = arith.ceildivsi %seen, %c128 : index
    %low = arith.constant dense<0xFF800000> : tensor<128x1xf32>
    %zero = arith.constant dense<0.0> : tensor<128x1xf32>
    %none = arith.constant dense<0.0> : tensor<128x128xf32>
    %m, %l, %acc = scf.for %n = %c0 to %tiles step %c1 iter_args(%max = %low, %sum = %zero, %out = %none) -> (tensor<128x1xf32>, tensor<128x1xf32>, tensor<128x128xf32>) {
      %firstKey = arith.muli %n, %c128 : index
      %keyRow = arith.addi %begin, %firstKey : index
      %keys = tile.load %k[%keyRow, %head, %c0] dims [0, 2] limit(%end) {tile.name = "load_k"} : !rows -> tensor<128x128xbf16>
      %values = tile.load %v[%keyRow, %head, %c0] dims [0, 2] limit(%end) {tile.name = "load_v"} : !rows -> tensor<128x128xbf16>
      %nothing = arith.constant dense<0.0> : tensor<128x128xf32>
      %s = tile.dot %queries, %keys, %nothing {transpose_b, tile.name = "scores"} : tensor<128x128xbf16>, tensor<128x128xbf16> -> tensor<128x128xf32>
      %isDiagonal = arith.cmpi sge, %firstKey, %firstQuery : index
      %masked = scf.if %isDiagonal -> tensor<128x128xf32> {
        %key = tile.iota dim 1 : tensor<1x128xi32>
        %query = tile.iota dim 0 : tensor<128x1xi32>
        %ahead = arith.subi %firstKey, %firstQuery : index
        %ahead32 = arith.index_cast %ahead : index to i32
        %shift = tile.splat %ahead32 : tensor<1x128xi32>
        %place = arith.addi %key, %shift : tensor<1x128xi32>
        %keyOf = tile.broadcast %place : tensor<1x128xi32> to tensor<128x128xi32>
        %queryOf = tile.broadcast %query : tensor<128x1xi32> to tensor<128x128xi32>
        %sees = arith.cmpi sle, %keyOf, %queryOf : tensor<128x128xi32>
        %hidden = arith.constant dense<0xFF800000> : tensor<128x128xf32>
        %cut = arith.select %sees, %s, %hidden : tensor<128x128xi1>, tensor<128x128xf32>
        scf.yield %cut : tensor<128x128xf32>
      } else {
        scf.yield %s : tensor<128x128xf32>
      } {tile.name = "mask"}
      %tileMax = tile.reduce max %masked dim 1 : tensor<128x128xf32>
      %newMax = arith.maximumf %max, %tileMax {tile.name = "row_max"} : tensor<128x1xf32>
      %isLow = arith.cmpf oeq, %newMax, %low : tensor<128x1xf32>
      %finite = arith.select %isLow, %zero, %newMax : tensor<128x1xi1>, tensor<128x1xf32>
      %scale = arith.constant dense<0.12751743082459868> : tensor<128x1xf32>
      %bias = arith.mulf %finite, %scale : tensor<128x1xf32>
      %minus = arith.negf %bias : tensor<128x1xf32>
      %old = math.fma %max, %scale, %minus : tensor<128x1xf32>
      %correction = math.exp2 %old {tile.name = "correction"} : tensor<128x1xf32>
      %scales = arith.constant dense<0.12751743082459868> : tensor<128x128xf32>
      %minuses = tile.broadcast %minus : tensor<128x1xf32> to tensor<128x128xf32>
      %power = math.fma %masked, %scales, %minuses : tensor<128x128xf32>
      %p = math.exp2 %power {tile.name = "softmax"} : tensor<128x128xf32>
      %oldSum = arith.mulf %sum, %correction : tensor<128x1xf32>
      %tileSum = tile.reduce sum %p dim 1 : tensor<128x128xf32>
      %newSum = arith.addf %oldSum, %tileSum {tile.name = "row_sum"} : tensor<128x1xf32>
      %half = arith.truncf %p {tile.name = "round"} : tensor<128x128xf32> to tensor<128x128xbf16>
      %corrections = tile.broadcast %correction : tensor<128x1xf32> to tensor<128x128xf32>
      %kept = arith.mulf %out, %corrections {tile.name = "rescale"} : tensor<128x128xf32>
      %next = tile.dot %half, %values, %kept {tile.name = "values"} : tensor<128x128xbf16>, tensor<128x128xbf16> -> tensor<128x128xf32>
      scf.yield %newMax, %newSum, %next : tensor<128x1xf32>, tensor<128x1xf32>, tensor<128x128xf32>
    }
    %one = arith.constant dense<1.0> : tensor<128x1xf32>
    %isEmpty = arith.cmpf oeq, %l, %zero : tensor<128x1xf32>
    %divisor = arith.select %isEmpty, %one, %l : tensor<128x1xi1>, tensor<128x1xf32>
    %inverse = arith.divf %one, %divisor : tensor<128x1xf32>
    %inverses = tile.broadcast %inverse : tensor<128x1xf32> to tensor<128x128xf32>
    %result = arith.mulf %acc, %inverses {tile.name = "output"} : tensor<128x128xf32>
    %rounded = arith.truncf %result : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.store %rounded, %o[%row, %head, %c0] dims [0, 2] limit(%end) : tensor<128x128xbf16>, !rows
    %isNone = arith.cmpf oeq, %m, %low : tensor<128x1xf32>
    %top = arith.select %isNone, %zero, %m : tensor<128x1xi1>, tensor<128x1xf32>
    %perUnit = arith.constant dense<0.08838834764831843> : tensor<128x1xf32>
    %shiftBack = arith.mulf %top, %perUnit : tensor<128x1xf32>
    %log = math.log %l : tensor<128x1xf32>
    %total = arith.addf %shiftBack, %log : tensor<128x1xf32>
    %vector = tile.reshape %total : tensor<128x1xf32> to tensor<128xf32>
    tile.store %vector, %lse[%row, %head] dims [0] limit(%end) : tensor<128xf32>, !tile.view<?x16xf32>
  }
  tile.return
}
tile.schedule @softmax_forward_bf16_hopper_128 target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, attend = {warpgroups = 2, registers = 240}}
    ops {load_q = {role = "load", barrier = "mbarrier"},
         load_k = {role = "load", buffers = 2, barrier = "mbarrier"},
         load_v = {role = "load", buffers = 2, barrier = "mbarrier"},
         scores = {role = "attend", stage = 0, issue = 0, barrier = "turn"},
         values = {role = "attend", stage = 1, issue = 1, barrier = "turn", operand = "registers"},
         mask = {role = "attend", stage = 0, issue = 2},
         row_max = {role = "attend", stage = 0, issue = 3},
         correction = {role = "attend", stage = 0, issue = 4},
         softmax = {role = "attend", stage = 0, issue = 5},
         row_sum = {role = "attend", stage = 0, issue = 6},
         rescale = {role = "attend", stage = 0, issue = 7},
         round = {role = "attend", stage = 0, issue = 8}}
    {hopper.traversal = array<i64: 2, 0, 1>, hopper.descending = array<i64: 2>}
