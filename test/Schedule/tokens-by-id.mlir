// Where ids are those of a batch, the runtime gives the tokens in their order: one
// more argument, of all gradients of tables that the entry has, and a point adds all
// tokens of a row at once. Ids of somebody else are looked through.
//
// RUN: hybrid-opt %s --hybrid-schedule -split-input-file | FileCheck %s
// RUN: hybrid-opt %s --hybrid-schedule=target=cuda -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @batch
// CHECK-SAME:   %[[BY_ID:[a-z0-9]+]]: tensor<?x3xi32> {hybrid.role = "tokens_by_id"})
// CHECK:        hybrid.dispatch @embed_grad_{{[0-9a-f]+}}(%[[BY_ID]], %{{.*}}, %{{.*}}) ties = [0, 2]
// CHECK:        hybrid.dispatch @embed_grad_{{[0-9a-f]+}}(%[[BY_ID]], %{{.*}}, %{{.*}}) ties = [0, 2]
// CHECK-LABEL: tile.program @embed_grad
// CHECK-SAME: (%{{.*}}: !tile.view<?x3xi32>, %[[DY:.*]]: !tile.view<?x8xbf16>, %[[TABLE:.*]]: !tile.view<5x8xf32>)
// CHECK:        %[[END:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK-NEXT:   %[[IS_FIRST:.*]] = arith.cmpi slt, %{{.*}}, %[[END]]
// CHECK-NEXT:   scf.if %[[IS_FIRST]]
// CHECK:          tile.load %[[TABLE]]
// CHECK:          tile.load %[[DY]]
// CHECK:          scf.for
// CHECK-COUNT-4:    tile.load %[[DY]]
// CHECK:          tile.store %{{.*}}, %[[TABLE]]
func.func @batch(%ids: tensor<?xi32> {hybrid.role = "ids"},
                 %dy: tensor<?x8xbf16> {hybrid.role = "input", hybrid.path = "dy"},
                 %dv: tensor<5x8xf32> {hybrid.role = "gradient", hybrid.path = "v"},
                 %dw: tensor<5x8xf32> {hybrid.role = "gradient", hybrid.path = "w"})
    -> (tensor<5x8xf32> {hybrid.role = "gradient", hybrid.path = "v"},
        tensor<5x8xf32> {hybrid.role = "gradient", hybrid.path = "w"})
    attributes {hybrid.entry = "batch"} {
  %0 = hybrid.embed_grad %ids, %dy : (tensor<?xi32>, tensor<?x8xbf16>) -> tensor<5x8xf32>
  %1 = hybrid.add %dv, %0 : tensor<5x8xf32>, tensor<5x8xf32>
  %2 = hybrid.embed_grad %ids, %dy : (tensor<?xi32>, tensor<?x8xbf16>) -> tensor<5x8xf32>
  %3 = hybrid.add %dw, %2 : tensor<5x8xf32>, tensor<5x8xf32>
  return %1, %3 : tensor<5x8xf32>, tensor<5x8xf32>
}

// -----

// CHECK-LABEL: func.func @others
// CHECK-NOT:   tokens_by_id
// CHECK:       hybrid.dispatch @embed_grad_{{[0-9a-f]+}}(%arg0, %{{.*}}, %{{.*}}) ties = [0, 2]
// CHECK-LABEL: tile.program @embed_grad
// CHECK-SAME: (%{{.*}}: !tile.view<?xi32>,
func.func @others(%ids: tensor<?xi32> {hybrid.role = "input", hybrid.path = "ids"},
                  %dy: tensor<?x8xf32> {hybrid.role = "input", hybrid.path = "dy"},
                  %dw: tensor<5x8xf32> {hybrid.role = "gradient", hybrid.path = "w"})
    -> (tensor<5x8xf32> {hybrid.role = "gradient", hybrid.path = "w"})
    attributes {hybrid.entry = "others"} {
  %0 = hybrid.embed_grad %ids, %dy : (tensor<?xi32>, tensor<?x8xf32>) -> tensor<5x8xf32>
  %1 = hybrid.add %dw, %0 : tensor<5x8xf32>, tensor<5x8xf32>
  return %1 : tensor<5x8xf32>
}
