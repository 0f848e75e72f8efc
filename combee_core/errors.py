"""Errors, named after the boundary that failed.

    CombeeError
    ├── UsageError            wrong use: an option, a file, a name
    │   └── PlaybookError         a playbook text that cannot be read
    ├── TraceError            a trace that cannot be read
    ├── ModelError            the call to the model
    │   ├── ModelBusy             429, 529: wait `retry_after`, then ask again
    │   ├── ModelFault            500, dropped connection: ask again
    │   │   └── ModelTimeout          no whole answer in time: ask again
    │   ├── ModelTooLarge         more than the model takes: split
    │   ├── ModelRefused          the provider will not answer this: skip or split
    │   └── ModelUnusable         wrong key, wrong name, no quota: stop
    │       ├── ModelAway             it asks to wait for longer than we may
    │       └── ModelFailing          its last calls failed, all of them
    │           └── ModelUseless          its last answers could not be used: it may be what was asked about
    ├── AnswerError           an answer came and cannot be used
    │   ├── AnswerTruncated       cut at the token limit
    │   ├── AnswerEmpty           nothing in it
    │   └── AnswerMalformed       not the JSON that was asked for
    ├── StoreError            the store
    │   ├── StoreDenied           no permission (never read as "not there")
    │   └── StoreUnavailable      no answer: try again
    └── RunError              a run that cannot go on
        ├── RunHeld               another live process works on the same run
        └── RunStopped            the client was closed: no new call
            └── BudgetSpent           a cap would be passed

A leaf is retryable when the same call may succeed later. Keep them picklable: arguments in `args`.
"""

from __future__ import annotations

from typing import Self

_EXCERPT = 200


class CombeeError(Exception):
    """Root of every error that this library raises on purpose.

    Messages end in logs, so they hold no text of a trace or of an answer: `excerpt` has the beginning of the text that
    the error is about, for the store. `told` once an alarm was raised for it.
    """

    retryable: bool = False
    excerpt: str = ""
    told: bool = False

    def alone(self) -> Self:
        """The same error without what it came from: errors of other libraries can be pickled and not be unpickled."""
        self.__cause__ = self.__context__ = None
        return self

    def about(self, text: str) -> Self:
        """The same error with the beginning of the text that it is about."""
        self.excerpt = text.strip()[:_EXCERPT]
        return self


def is_told(error: BaseException) -> bool:
    """Whether an alarm was raised for an error, ours or not."""
    return bool(getattr(error, "told", False))


def mark_told(error: BaseException) -> None:
    """Note that an alarm was raised for an error: whoever meets it further out raises none."""
    vars(error)["told"] = True


class UsageError(CombeeError):
    """The command, configuration or input is wrong; the message says how to mend it."""


class PlaybookError(UsageError):
    """A playbook cannot be read; the message has the line number."""


class TraceError(CombeeError):
    """A trace cannot be read."""


class ModelError(CombeeError):
    """A call to the model failed."""


class ModelBusy(ModelError):
    """The provider asks to wait (429, 529). `retry_after` is in seconds, None when it gave none."""

    retryable = True

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message, retry_after)
        self.retry_after = retry_after

    def __str__(self) -> str:
        return str(self.args[0])


class ModelFault(ModelError):
    """A passing fault: server error, time-out, dropped connection."""

    retryable = True


class ModelTimeout(ModelFault):
    """No whole answer came in time."""


class ModelTooLarge(ModelError):
    """The request is larger than the model takes."""


class ModelRefused(ModelError):
    """The model or its provider refuses to answer."""


class ModelUnusable(ModelError):
    """No call can succeed: wrong key, unknown model, no quota."""


class ModelAway(ModelUnusable):
    """The provider asks to wait for longer than a call may; the message says when to try again."""


class ModelFailing(ModelUnusable):
    """So many calls in a row have failed that the next ones would too; the message groups the causes."""


class ModelUseless(ModelFailing):
    """So many answers in a row could not be used, for fault of the model or of what it was asked about."""


class AnswerError(CombeeError):
    """An answer arrived that cannot be used; it was paid for all the same."""

    retryable = True


class AnswerTruncated(AnswerError):
    """The answer was cut at the token limit. `final` after the one retry with a larger budget: then split."""

    def __init__(self, message: str, final: bool = False) -> None:
        super().__init__(message, final)
        self.retryable = not final

    def __str__(self) -> str:
        return str(self.args[0])


class AnswerEmpty(AnswerError):
    """The answer has no content."""


class AnswerMalformed(AnswerError):
    """The answer is not what the schema asks for."""


class StoreError(CombeeError):
    """The store failed."""


class StoreDenied(StoreError):
    """The store refuses access."""


class StoreUnavailable(StoreError):
    """The store does not answer."""

    retryable = True


class RunError(CombeeError):
    """A run cannot go on. `stage` and `item` name the place."""

    def __init__(self, message: str, stage: str = "", item: str = "") -> None:
        super().__init__(message, stage, item)
        self.stage, self.item = stage, item

    def __str__(self) -> str:
        return str(self.args[0])


class RunHeld(RunError):
    """Another live process holds the run; `str()` names it."""


class RunStopped(RunError):
    """The run is stopping: no new call is made, what is saved stays saved."""


class BudgetSpent(RunStopped):
    """A cap in money, tokens, calls or minutes would be passed: `facts` says what was used, `item` is its option.

    `held` is the number of complete batches that were not published since `on_budget` is hold.
    """

    held: int = 0

    @property
    def facts(self) -> str:
        """Which cap, and how much of it is used."""
        return str(self.args[0])

    @property
    def is_of_a_run(self) -> bool:
        """True where the cap is the run's own, so that another run may go on; a day's cap holds for all."""
        return not self.item.endswith("-per-day")

    def __str__(self) -> str:
        return f"{self.facts}; what was paid for is saved: raise the cap and run the same command to go on"
