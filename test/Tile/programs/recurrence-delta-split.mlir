// A long segment split over programs: the map of every part (summary), the state
// before every part (combine), all outputs at once (apply). The three programs
// are in files of their own.
//
// RUN: cat %S/recurrence-delta-summary.mlir %S/recurrence-delta-combine.mlir \
// RUN:   %S/recurrence-delta-apply.mlir %s > %t.mlir
// RUN: tile-against-oracle %t.mlir --lengths=257,0,1

!x = tensor<?x2x128xf32>
!g = tensor<?x2x1xf32>
!b = tensor<?x2xf32>
!s = tensor<?x2x128x128xf32, #hybrid.slots>
!part = tensor<?x2x128x128xf32, #hybrid.sized<affine_map<()[t, n, l, s, c, d] -> (t floordiv 256 + n)>>>

func.func @definition(%q: !x, %k: !x {random.range = array<f64: -0.15, 0.15>}, %v: !x, %g: !g {random.range = array<f64: -0.3, 0.0>}, %b: !b {random.range = array<f64: 0.0, 1.0>}, %s0: !s, %segments: !hybrid.segments)
    -> (!x, !s) {
  %r:2 = hybrid.recurrence delta %q, %k, %v, %segments decay(%g) beta(%b) initial(%s0) scale 0.0883883461356163
      : (!x, !x, !x, !hybrid.segments, !g, !b, !s) -> (!x, !s)
  return %r#0, %r#1 : !x, !s
}

func.func @dispatched(%q: !x, %k: !x, %v: !x, %g: !g, %b: !b, %s0: !s, %segments: !hybrid.segments)
    -> (!x, !s) {
  %m:2 = hybrid.dispatch @recurrence_summary(%q, %k, %v, %segments, %g, %b)
      : (!x, !x, !x, !hybrid.segments, !g, !b) -> (!part, !part)
  %c:2 = hybrid.dispatch @recurrence_combine(%segments, %m#0, %m#1, %s0) ties = [0, 3]
      : (!hybrid.segments, !part, !part, !s) -> (!s, !part)
  %o = hybrid.dispatch @recurrence_apply(%q, %k, %v, %segments, %g, %b, %c#1)
      : (!x, !x, !x, !hybrid.segments, !g, !b, !part) -> !x
  return %o, %c#0 : !x, !s
}
