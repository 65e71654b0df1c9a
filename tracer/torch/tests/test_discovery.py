"""Tests which steps of optimizers end iterations, and that looking at the job's optimizers never makes the job fail."""

import gc
import io
import unittest
import weakref
from unittest import mock

from support import hide_optimizers, torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from tidepool_torch import live
from tidepool_torch.discovery import Discovery, outermost_modules


def sgd(kind=torch.optim.SGD):
    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.grad = torch.ones(2)
    return kind([parameter], lr=0.5)


def adam():
    return sgd(torch.optim.Adam)


class Equal(torch.optim.SGD):
    """An optimizer without a hash. All optimizers of this class are equal."""

    def __eq__(self, other):
        return isinstance(other, Equal)


class Refusing(torch.optim.SGD):
    """An optimizer that refuses to show its groups once `refuses` is set."""

    refuses = False

    @property
    def param_groups(self):
        if self.refuses:
            raise RuntimeError("no groups")
        return self._groups

    @param_groups.setter
    def param_groups(self, groups):
        self._groups = groups


class Sharded:
    """Owns an optimizer, and has it step for one flat shard after the other. DeepSpeed is an example."""

    def __init__(self, shards):
        self.shards = [torch.nn.Parameter(torch.ones(2)) for _ in range(shards)]
        self.optimizer = torch.optim.SGD(self.shards, lr=0.5)
        self.optimizer.param_groups[0]["params"] = []
        self.before_last = lambda: None

    def train(self):
        for shard in self.shards:
            shard.grad = (shard * 2).detach()
        for shard in self.shards:
            if shard is self.shards[-1]:
                self.before_last()
            self.optimizer.param_groups[0]["params"] = [shard]
            self.optimizer.step()
        self.optimizer.param_groups[0]["params"] = []


class Modules(unittest.TestCase):
    def test_their_order_is_that_of_the_optimizers_however_the_garbage_collector_holds_them(self):
        known = untrained, first, second = [torch.nn.Sequential(torch.nn.Linear(2, 2)) for _ in range(3)]
        optimizers = [torch.optim.SGD(model.parameters(), lr=0.5) for model in (first, second)]
        for held in (known, known[::-1]):
            with mock.patch("gc.get_objects", return_value=[part for model in held for part in model.modules()]):
                found = outermost_modules(optimizers)
            self.assertTrue(all(each is model for each, model in zip(found, (first, second, untrained), strict=True)))


class Steps(unittest.TestCase):
    def setUp(self):
        hide_optimizers(self)
        self.ends, self.errors = [], []
        self.discovery = Discovery(lambda optimizer: self.ends.append(id(optimizer)),
                                   lambda error: self.errors.append(str(error)))
        self.addCleanup(self.discovery.stop)

    def step(self, *optimizers):
        """Steps each optimizer. Returns, for each one, how many of its steps have ended an iteration."""
        for optimizer in optimizers:
            optimizer.step()
        return [self.ends.count(id(optimizer)) for optimizer in optimizers]

    def test_each_step_of_the_only_optimizer_ends_an_iteration(self):
        self.assertEqual(self.step(only := adam()), [1])
        self.assertEqual(self.step(only), [2])

    def test_the_optimizer_that_steps_last_ends_iterations(self):
        discriminator, generator = adam(), adam()
        self.assertEqual(self.step(discriminator, generator), [0, 1])
        self.assertEqual(self.step(discriminator, generator), [0, 2])
        self.assertEqual([id(each) for each in self.discovery.optimizers()], [id(generator), id(discriminator)])

    def test_state_that_was_loaded_changes_nothing(self):
        discriminator, generator = adam(), adam()
        with mock.patch.object(self.discovery, "in_process", lambda: False):
            generator.step()  # this step is not seen
        self.assertTrue(generator.state)
        self.assertEqual(self.step(discriminator, generator), [0, 1])

    def test_an_optimizer_that_never_steps_is_waited_for_once(self):
        only, never = sgd(), sgd()
        self.assertEqual(self.step(only), [0])
        self.assertEqual(self.step(only), [1])
        self.assertEqual(never.param_groups[0]["params"][0].tolist(), [1, 1])

    def test_an_optimizer_that_refuses_to_show_its_groups_is_not_waited_for(self):
        first, other = sgd(), sgd(Refusing)
        other.refuses = True
        self.assertEqual(self.step(first), [1])
        self.assertEqual(self.errors, [])

    def test_an_optimizer_with_a_group_without_parameters_is_not_waited_for(self):
        first, other = sgd(), sgd()
        del other.param_groups[0]["params"]
        self.assertEqual(self.step(first), [1])

    def test_optimizers_without_a_hash_that_are_equal_are_told_apart(self):
        first, other = sgd(Equal), sgd(Equal)
        self.step(first, other, first)
        self.assertEqual([id(each) for each in self.discovery.optimizers()], [id(other), id(first)])
        self.assertEqual(self.ends, [id(other)])

    def test_where_all_optimizers_step_within_backward_passes_these_end_iterations(self):
        weight = torch.nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([weight], lr=0.5)
        weight.register_post_accumulate_grad_hook(lambda _: optimizer.step())
        for _ in range(3):
            weight.sum().backward()
        self.assertEqual((self.ends, self.discovery.optimizers()), ([id(None)] * 3, [optimizer]))
        behind = sgd()
        self.step(behind)
        weight.sum().backward()
        self.assertEqual((self.ends[3:], self.discovery.optimizers()), ([id(behind)], [behind]))

    def test_without_an_optimizer_backward_passes_end_iterations(self):
        weight = torch.nn.Parameter(torch.ones(2))
        waiting = sgd()
        for _ in range(2):
            weight.sum().backward()
        self.assertEqual(self.ends, [])  # an optimizer will step
        del waiting
        for _ in range(2):
            weight.sum().backward()
        self.assertEqual(self.ends, [id(None)] * 2)

    def test_an_error_is_reported_and_does_not_reach_the_job(self):
        other = sgd()  # its groups would be compared with those of the first
        first = sgd(Refusing)
        first.register_step_post_hook(lambda *_: setattr(first, "refuses", True))
        first.step()
        self.assertEqual((self.errors, self.ends), (["no groups"], []))
        self.assertEqual(other.param_groups[0]["params"][0].tolist(), [1, 1])
        self.assertEqual(first._groups[0]["params"][0].tolist(), [0.5, 0.5])

    def test_an_error_ends_the_search_even_if_reporting_it_fails(self):
        self.discovery._failed_hook = self.discovery._stepped_hook = mock.Mock(side_effect=BrokenPipeError)
        with self.assertRaises(BrokenPipeError):
            sgd().step()
        sgd().step()
        with mock.patch("sys.stderr", io.StringIO()) as closed:
            closed.close()
            live._say(RuntimeError("no groups"))

    def test_hooks_of_the_job_are_called_in_a_step_that_ends_the_search(self):
        called = []
        self.discovery._stepped_hook = lambda _: self.discovery.stop()
        hook = register_optimizer_step_post_hook(lambda *_: called.append(1))  # after that of Discovery
        self.addCleanup(hook.remove)
        sgd().step()
        self.assertEqual((called, self.errors), ([1], []))

    def test_an_error_at_the_end_of_an_iteration_does_not_reach_the_job(self):
        self.discovery.stop()
        self.discovery = Discovery(lambda _: 1 / 0, lambda error: self.errors.append(str(error)))
        sgd().step()
        self.assertEqual(self.errors, ["division by zero"])

    def test_wrappers_of_optimizers_that_have_stepped_are_not_waited_for(self):
        discriminator, generator = adam(), adam()
        wrappers = [torch.optim.SGD(each.param_groups[0]["params"], lr=0.5) for each in (discriminator, generator)]
        self.assertEqual(self.step(discriminator, generator), [0, 1])
        self.assertEqual(self.step(discriminator, generator), [0, 2])
        self.assertEqual(len(wrappers), 2)

    def test_the_other_optimizers_are_in_the_order_of_their_first_steps(self):
        made = [adam() for _ in range(8)]
        order = [made[index] for index in (5, 2, 7, 0, 3, 6, 1, 4)]
        self.step(*order, *made, *order)
        self.assertEqual([id(each) for each in self.discovery.optimizers()], [id(each) for each in (order[-1], *order[:-1])])

    def test_another_optimizer_takes_the_place_of_one_that_the_job_drops(self):
        other, last = adam(), adam()
        self.assertEqual(self.step(other, last, other, last), [0, 2, 0, 2])
        gone = weakref.ref(last)
        del last
        gc.collect()
        self.assertIsNone(gone())
        self.assertEqual([id(each) for each in self.discovery.optimizers()], [id(other)])
        self.assertEqual(self.step(other), [1])

    def test_an_optimizer_that_steps_once_to_warm_up_does_not_end_iterations(self):
        warm_up, main = adam(), adam()
        self.assertEqual(self.step(warm_up, main), [0, 1])
        self.assertEqual(self.step(main), [2])

    def test_iterations_end_with_an_optimizer_that_steps_twice_before_the_others_step(self):
        critic, generator = adam(), adam()
        self.assertEqual(self.step(critic), [0])
        self.assertEqual(self.step(critic), [1])
        self.assertEqual(self.step(critic, generator), [2, 0])

    def test_a_first_optimizer_whose_first_step_ended_an_iteration_keeps_its_place(self):
        first = adam()
        first.step()
        other = adam()
        self.assertEqual(self.step(other, other, other, first), [0, 0, 0, 2])

    def test_the_last_step_of_those_that_the_owner_of_an_optimizer_asks_for_ends_an_iteration(self):
        told = []
        self.discovery._stepped_hook = lambda _: told.append(self.discovery.goes_on)
        owner = Sharded(3)
        owner.train()
        self.assertEqual(told, [False, True, True])  # more steps than one are seen as they come
        owner.before_last = lambda: self.assertEqual(len(told), before)
        for _ in range(2):
            before = len(told)
            owner.train()
            self.assertEqual(told[before:], [False])
        owner.before_last = lambda: None
        del owner.shards[1]
        owner.train()  # its end is not seen: a third step could come
        self.assertEqual(len(told), 5)
        owner.train()
        self.assertEqual(told[5:], [False])

    def test_steps_for_other_parameters_after_another_forward_pass_end_iterations(self):
        owner = Sharded(1)
        owner.train()
        owner.shards = [torch.nn.Parameter(torch.ones(2))]
        owner.train()
        self.assertEqual((len(self.ends), self.discovery.goes_on), (2, False))

    def test_an_optimizer_that_goes_on_alone_takes_the_place_of_an_earlier_one_that_the_job_keeps(self):
        first = adam()
        first.step()
        later = adam()
        self.assertEqual([self.step(later)[0] for _ in range(6)], [0, 0, 0, 1, 2, 3])
        self.assertEqual([id(each) for each in self.discovery.optimizers()], [id(later), id(first)])
        self.assertEqual(self.step(*[first] * 6)[0], 1)  # it began earlier: its phase is a part of the job's rounds


if __name__ == "__main__":
    unittest.main()
