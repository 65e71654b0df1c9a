"""Steps unlike the recorded one under a plan: what the plan does not know leaves for the host when there is no room."""

import unittest

from support import check_numbers, torch


class UnlikeSteps(unittest.TestCase):
    def make(self):
        """Eight layers of 256 KiB with Adam, whose states, gradients and weights take 8 MiB. The activations take 1 MiB."""
        torch.manual_seed(0)
        layers = [layer for _ in range(8) for layer in (torch.nn.Linear(256, 256), torch.nn.Tanh())]
        network, x = torch.nn.Sequential(*layers), torch.randn(256, 256)
        optimizer = torch.optim.Adam(network.parameters(), foreach=False)

        def step(rows=64):
            loss = network(x[:rows]).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss.item()

        return network, optimizer, step

    def check(self, drive):
        report, predicted = check_numbers(self, self.make, "tide", "0.7x", lambda made: drive(*made))
        self.assertNotIn("stopped", report)
        self.assertLessEqual(report["peak_bytes"], predicted["peak_bytes"])
        self.assertLessEqual(report["between_peak_bytes"], predicted["limit_bytes"])
        return report

    def test_a_shorter_last_batch_runs_within_the_plans_memory_and_is_named(self):
        report = self.check(lambda network, optimizer, step: [step(), step(), step(), step(20)])
        self.assertEqual((report["iterations"], report["unlike_steps"], report["between_unlike"]), (3, [5], True))

    def test_steps_that_alternate_are_all_within_the_plans_memory(self):
        def drive(network, optimizer, step):
            return [step(rows) for rows in (64, 64, 64, 20, 64, 48, 64, 30, 20, 64, 64)]

        self.assertEqual(self.check(drive)["unlike_steps"], [5, 7, 9, 10])

    def test_a_job_that_gives_the_plan_up_stays_within_its_memory(self):
        report = self.check(lambda network, optimizer, step: [step() for _ in range(3)] + [step(20) for _ in range(11)])
        self.assertEqual((report["gave_up"], report["unlike"]), (True, 11))

    def test_a_validation_between_steps_leaves_its_memory_to_the_next_step(self):
        def drive(network, optimizer, step):
            values = [step() for _ in range(3)]
            for _ in range(2):
                with torch.no_grad():
                    values.append(network(torch.ones(1024, 256)).sum().item())  # 1 MiB for each activation
                values += [step(), step()]
            return values

        report = self.check(drive)
        self.assertEqual((report["iterations"], report["deviations"], report["left_out"]), (7, 0, {}))

    def test_weights_are_there_for_code_that_reads_memory_after_an_unlike_step(self):
        def drive(network, optimizer, step):
            values = [step(), step(), step(), step(20)]
            for tensor in [*network.parameters(), *(state["exp_avg"] for state in optimizer.state.values())]:
                values.append(tensor.detach().tolist())
            return [*values, step()]

        self.assertEqual(self.check(drive)["iterations"], 4)


if __name__ == "__main__":
    unittest.main()
