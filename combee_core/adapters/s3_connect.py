"""Connects to a bucket; here and nowhere else s3fs is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from combee_core.adapters.s3_errors import LIMIT
from combee_core.errors import UsageError

if TYPE_CHECKING:
    from combee_core.adapters.s3_client import S3Client


def connect(bucket: str, limit: float = LIMIT) -> S3Client:
    """A client for `bucket`; `limit` is in seconds, for one request. Raises `UsageError` without the extra `s3`."""
    try:
        from combee_core.adapters.s3_client import S3Client
    except ImportError as error:
        raise UsageError(f"s3://{bucket} needs {error.name}: pip install 'combee-pipeline[s3]'") from error
    return S3Client(bucket, limit)
