"""What an S3 server's refusal means, told with the way out."""

from __future__ import annotations

from typing import NamedTuple

from combee_core.errors import StoreDenied, StoreError, StoreUnavailable

LIMIT = 120.0
"""Seconds after which a request, with the client's own repetitions, counts as not answered."""


class Refused(StoreError):
    """The condition of a write does not hold (412)."""


class Missing(StoreError):
    """There is no such object."""


class Busy(StoreUnavailable):
    """Another conditional write of this key is under way (409): the same call may succeed in a moment."""


class Answer(NamedTuple):
    """An S3 error as the server sent it."""

    status: int
    code: str
    message: str


_DENIED = {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"}
_PASSING = {"SlowDown", "RequestTimeout", "InternalError", "ServiceUnavailable"}
_REGION = {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"}


def explain(answer: Answer, bucket: str, where: str) -> StoreError:
    """The error that stands for `answer` about `where` (a URI).

    Only NoSuchKey is `Missing`. A bare 404 is not, since a wrong endpoint gives one too, and a 403 never is,
    since that is how S3 answers for a missing key to somebody who may not list the bucket.
    """
    status, code, _ = answer
    said = f"{where}: {code} ({status}): {answer.message}"
    if status == 412:
        return Refused(said)
    if code == "NoSuchKey":
        return Missing(said)
    if code == "NoSuchBucket":
        return StoreError(f"{said}: create it with `aws s3 mb s3://{bucket}`, or name another bucket")
    if status in (401, 403) or code in _DENIED:
        return StoreDenied(f"{said}: {_denied_hint(code, bucket)}")
    return _other(answer, said)


def _denied_hint(code: str, bucket: str) -> str:
    if code == "RequestTimeTooSkewed":
        return "set this machine's clock right"
    if code in _DENIED - {"AccessDenied"}:
        return "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"
    return (
        "grant these keys s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket on "
        f"{bucket}. Without s3:ListBucket S3 answers 403 even for an object that does not exist"
    )


def _other(answer: Answer, said: str) -> StoreError:
    if answer.status == 409:
        return Busy(f"{said}: another write of the same key is under way, try again")
    if answer.status == 501:
        return StoreError(f"{said}: the server does not know conditional writes: use another one, or file://")
    if answer.code in _PASSING or answer.status == 429 or answer.status >= 500:
        return StoreUnavailable(f"{said}: try again")
    if answer.code in _REGION:
        return StoreError(f"{said}: set AWS_DEFAULT_REGION to the bucket's region")
    return StoreError(f"{said}: check that AWS_ENDPOINT_URL is the address of an S3 server")
