"""The calls to s3fs: one client, one error language. Needs the extra `s3`.

The client's coroutines run on s3fs's own thread and loop, whatever loop or thread the caller has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import aiohttp
import s3fs
from botocore import exceptions as boto
from fsspec.asyn import sync

from combee_core.adapters.s3_errors import Answer, explain
from combee_core.errors import StoreDenied, StoreError, StoreUnavailable, UsageError

T = TypeVar("T")

_NO_KEYS = (boto.NoCredentialsError, boto.PartialCredentialsError, boto.CredentialRetrievalError)
_NO_ANSWER = (boto.HTTPClientError, boto.ConnectionError, aiohttp.ClientError, OSError)


class S3Client:
    """Requests to one bucket, with the environment's endpoint and credentials."""

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket
        self._fs = s3fs.S3FileSystem(use_listings_cache=False, skip_instance_cache=True)

    def get(self, name: str) -> tuple[bytes, str]:
        """Body and ETag of one answer."""
        got: tuple[bytes, str] = self._telling(name, lambda: sync(self._fs.loop, self._get, name))
        return got

    def call(self, method: str, about: str, **arguments: Any) -> dict[str, Any]:
        """Any other request of boto3's S3 client; `about` is the object or prefix to name in errors."""
        return self._telling(about, lambda: self._fs.call_s3(method, Bucket=self._bucket, **arguments))

    async def _get(self, name: str) -> tuple[bytes, str]:
        answer = await self._fs._call_s3("get_object", Bucket=self._bucket, Key=name)
        async with answer["Body"] as body:
            return await body.read(), answer["ETag"]

    def _telling(self, about: str, act: Callable[[], T]) -> T:
        try:
            return act()
        except (OSError, boto.BotoCoreError, aiohttp.ClientError) as error:
            raise _translated(error, self._bucket, f"s3://{self._bucket}/{about}") from error
        except ValueError as error:
            raise UsageError(
                f"s3://{self._bucket}: {error}: check AWS_ENDPOINT_URL and AWS_DEFAULT_REGION"
            ) from error


def _translated(error: Exception, bucket: str, where: str) -> StoreError:
    response = getattr(error.__cause__, "response", None)
    if isinstance(response, dict):
        told = response.get("Error", {})
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return explain(Answer(status, str(told.get("Code", "")), str(told.get("Message", ""))), bucket, where)
    if isinstance(error, _NO_KEYS):
        return StoreDenied(f"{where}: {error}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    if isinstance(error, _NO_ANSWER):
        return StoreUnavailable(
            f"{where}: no answer: {error}: check AWS_ENDPOINT_URL and the network, then try again"
        )
    return StoreError(f"{where}: {error}")
