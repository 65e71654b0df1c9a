"""Which Follower a plan needs."""

from tidepool_torch import native
from tidepool_torch.errors import RecordingError

from .follower import Follower


def follower_for(plan, *arguments, **more):
    """A Follower whose job has the ops of the plan's trace: a dispatch mode changes some of the job's ops, the native core none."""
    if not plan.native:
        return Follower(plan, *arguments, **more)
    from .native_follower import NativeFollower

    try:
        core = native.core()
        if not core.works_here():
            raise native.NativeError("a dry run does not follow the values of the thread that trains")
    except native.NativeError as error:
        raise RecordingError(f"the trace has the ops of the job alone, as the native core records them, which cannot be used here: "
                             f"{error}; expected a trace that was recorded with TIDEPOOL_NATIVE=off") from None
    return NativeFollower(core, plan, *arguments, **more)
