func.func @gate(%x: tensor<?x16xf32> {hybrid.role = "input", hybrid.path = "x"})
    -> (tensor<?x16xf32> {hybrid.role = "output", hybrid.path = "y"})
    attributes {hybrid.entry = "gate"} {
  %y = hybrid.silu %x : tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
