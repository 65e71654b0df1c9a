"""The usual way to record: some steps as a warm-up, then the steps to record."""

from .recorder import Recorder


def record_steps(step, models, optimizers=(), device="a100", name="", warmup=1, steps=1):
    """Calls step() `warmup` times, then records `steps` calls, one iteration each. Returns the Recorder.

    The warm-up makes the tensors that live from step to step, above all the optimizer's state, so that the trace shows
    a step like all later ones. The other arguments are those of Recorder."""
    for _ in range(warmup):
        step()
    with Recorder(models, optimizers, device, name) as recorder:
        for index in range(steps):
            if index > 0:
                recorder.iteration()
            step()
    return recorder
