"""What is read off a provider's fault: its status, its names, what it refuses."""

from __future__ import annotations

import pytest

from combee_core.adapters.classify import Fault, fault_of, is_output_limit, is_unreached, refused_parameters
from combee_core.errors import ModelBusy


def test_only_what_was_never_reached_is_unreached() -> None:
    assert is_unreached(Fault(500, "", {}, ("InternalServerError", "ConnectionRefusedError")))
    assert is_unreached(Fault(408, "", {}, ("Timeout",)))
    assert not is_unreached(Fault(500, "", {}, ("InternalServerError",)))
    assert not is_unreached(Fault(500, "", {}, ("InternalServerError", "ClientPayloadError")))


def test_an_exhausted_output_budget_reported_as_a_bad_request_is_told_apart() -> None:
    words = "Could not finish the message because max_tokens or model output limit was reached."
    assert is_output_limit(Fault(400, words))
    assert not is_output_limit(Fault(400, "max_tokens must be positive"))
    assert not is_output_limit(Fault(500, words))


@pytest.mark.parametrize(
    ("status", "body", "refused"),
    [
        (400, "Unsupported value: 'temperature' does not support 0", {"temperature"}),
        (422, '{"loc": ["body", "seed"], "msg": "extra fields"}', {"seed"}),
        (400, "'response_format' is not supported by this model", {"response_format"}),
        (400, "Invalid json_schema: additionalProperties", {"response_format"}),
        (400, "your text talks of temperature and seed", set()),
        (400, "bad thing", set()),
        (500, "'temperature' broke the server", set()),
    ],
)
def test_parameters_that_a_server_refuses_by_name_are_found(status: int, body: str, refused: set[str]) -> None:
    sent = {"temperature": 0.0, "seed": 1, "response_format": {}}
    assert refused_parameters(Fault(status, body), sent) == refused
    assert refused_parameters(Fault(status, body), {}) == set()


class StubResponse:
    def __init__(self, status: int, text: str) -> None:
        self.status_code, self.text, self.headers = status, text, {"retry-after": "3"}


class HTTPStatusError(Exception):
    response = StubResponse(529, "Overloaded")


class VendorError(Exception):
    status_code = 500


def test_the_status_on_the_wire_goes_before_the_one_a_library_made_up() -> None:
    error = VendorError("internal")
    error.__cause__ = HTTPStatusError("529")
    fault = fault_of(error)
    assert (fault.status, fault.headers) == (529, {"retry-after": "3"})
    assert fault.names == ("VendorError", "HTTPStatusError")
    assert "Overloaded" in fault.body
    assert "internal" in fault.body


def test_an_earlier_call_being_handled_is_not_mistaken_for_this_one() -> None:
    earlier = ModelBusy("busy", 3.0)
    earlier.__cause__ = HTTPStatusError("529")
    error = VendorError("internal")
    error.__context__ = earlier
    assert fault_of(error) == Fault(500, "internal", {}, ("VendorError",))


def test_a_circle_of_causes_ends() -> None:
    one, two = VendorError("one"), VendorError("two")
    one.__context__, two.__context__ = two, one
    assert fault_of(one).names == ("VendorError", "VendorError")


def test_a_body_that_cannot_be_read_is_no_second_fault() -> None:
    class Unread(StubResponse):
        def __init__(self) -> None:
            self.status_code, self.headers = 500, {}

        @property
        def text(self) -> str:  # type: ignore[override]
            raise RuntimeError("the body was not read")

    error = VendorError("internal")
    error.response = Unread()  # type: ignore[attr-defined]
    assert fault_of(error).body == "internal"
