"""Read what is known of a proven gain, and repeat its proof."""

from advisor.errors import UsageError
from advisor.operations import again


def repeat() -> bool:
    """Measure three pairs more, as root; whether the gain is not shown to have gone."""
    return again.prove_again("last", pairs=3, say=print).is_there


try:
    print(again.read_gain("last").gains)
except UsageError as error:
    print(error.message)
