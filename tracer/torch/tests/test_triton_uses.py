"""What kernels of Triton read and write, from their code."""

import unittest

from support import torch  # noqa: F401

from tidepool_torch.triton_uses import uses_of

# As Triton 3.9 prints it; the loop moves %x and %y along, and the sum is kept where %sum points.
CODE = """
module {
  tt.func public @rows(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x"(#loc)), %y: !tt.ptr<f32>, %sum: !tt.ptr<f32>, \
%unused: !tt.ptr<f32>, %n: i32) attributes {noinline = false} {
    %c0 = arith.constant 0 : i32 loc(#loc1)
    %0 = tt.splat %x : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>> loc(#loc1)
    %1:2 = scf.for %i = %c0 to %n step %c0 iter_args(%at = %0, %to = %y) -> (tensor<8x!tt.ptr<f32>>, !tt.ptr<f32>)  : i32 {
      %2 = tt.load %at : tensor<8x!tt.ptr<f32>> loc(#loc1)
      %3 = "tt.reduce"(%2) <{axis = 0 : i32}> ({
      ^bb0(%a: f32 loc(unknown), %b: f32 loc(unknown)):
        %9 = arith.addf %a, %b : f32 loc(#loc1)
        tt.reduce.return %9 : f32 loc(#loc1)
      }) : (tensor<8xf32>) -> f32 loc(#loc1)
      %4 = scf.if %c -> (f32) {
        scf.yield %3 : f32 loc(#loc1)
      } else {
        scf.yield %3 : f32 loc(#loc1)
      } loc(#loc1)
      tt.store %to, %4 : !tt.ptr<f32> loc(#loc1)
      %5 = tt.addptr %at, %2 : tensor<8x!tt.ptr<f32>>, tensor<8xi32> loc(#loc1)
      %6 = tt.addptr %to, %n : !tt.ptr<f32>, i32 loc(#loc1)
      scf.yield %5, %6 : tensor<8x!tt.ptr<f32>>, !tt.ptr<f32> loc(#loc1)
    } loc(#loc1)
    %7 = tt.load %1#1 : !tt.ptr<f32> loc(#loc1)
    %8 = tt.atomic_rmw fadd, acq_rel, gpu, %sum, %7, %true : (!tt.ptr<f32>, f32, i1) -> f32 loc(#loc1)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
"""


class TritonUsesTest(unittest.TestCase):
    def test_parameters_are_followed_to_loads_and_stores(self):
        self.assertEqual(uses_of(CODE), "rbb--")
        self.assertEqual(uses_of(CODE.replace("tt.load %1#1", "tt.load %1#0")), "rbb--")  # results of a loop are one value

    def test_what_a_value_that_was_loaded_points_to_is_no_parameter(self):
        code = CODE.replace("tt.store %to, %4", "tt.store %4, %3").replace("tt.load %1#1", "tt.splat %n")
        self.assertEqual(uses_of(code), "r-b--")

    def test_code_that_is_not_followed_has_no_known_uses(self):
        self.assertIsNone(uses_of(CODE.replace("tt.return", "tt.call @inner(%x) :")))
        self.assertIsNone(uses_of(CODE.replace("%sum: !tt.ptr<f32>", "%sum: !tt.tensordesc<tensor<8xf32>>")))
        self.assertIsNone(uses_of("not what Triton prints"))


if __name__ == "__main__":
    unittest.main()
