"""The calls to s3fs: one client, one error language. Needs the extra `s3`.

The client's coroutines run on s3fs's own thread and loop, whatever loop or thread the caller has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import aiohttp
import s3fs
from botocore import exceptions as boto
from fsspec.asyn import sync

from combee_core.adapters.s3_errors import LIMIT, Answer, explain
from combee_core.errors import StoreDenied, StoreError, StoreUnavailable, UsageError

T = TypeVar("T")

_NO_KEYS = (boto.NoCredentialsError, boto.PartialCredentialsError, boto.CredentialRetrievalError)
_NO_ANSWER = (boto.HTTPClientError, boto.ConnectionError, aiohttp.ClientError, OSError)


class S3Client:
    """Requests to one bucket, with the environment's endpoint and credentials.

    `limit` is in seconds, for one request with all its repetitions. Without it a write to a server that
    accepts the connection and then says nothing waits for ever: there is no other limit to the wait for its
    "100 Continue".
    """

    def __init__(self, bucket: str, limit: float = LIMIT) -> None:
        self._bucket, self._limit = bucket, limit
        self._fs = s3fs.S3FileSystem(use_listings_cache=False, skip_instance_cache=True)

    def get(self, name: str) -> tuple[bytes, str]:
        """Body and ETag of one answer."""
        return self._run(name, self._get(name))

    def listing(self, prefix: str) -> Iterator[dict[str, Any]]:
        """Every object whose name starts with `prefix` (Key, Size, LastModified, …), however many pages they fill."""
        more: dict[str, str] = {}
        while True:
            page = self.call("list_objects_v2", prefix, Prefix=prefix, **more)
            yield from page.get("Contents", ())
            if not page.get("IsTruncated"):
                return
            more = {"ContinuationToken": page["NextContinuationToken"]}

    def call(self, method: str, about: str, **arguments: Any) -> dict[str, Any]:
        """Any other request of boto3's S3 client; `about` is the object or prefix to name in errors."""
        return self._run(about, self._fs._call_s3(method, Bucket=self._bucket, **arguments))

    async def _get(self, name: str) -> tuple[bytes, str]:
        answer = await self._fs._call_s3("get_object", Bucket=self._bucket, Key=name)
        async with answer["Body"] as body:
            return await body.read(), answer["ETag"]

    def _run(self, about: str, request: Coroutine[Any, Any, T]) -> T:
        where = f"s3://{self._bucket}/{about}"
        try:
            result: T = sync(self._fs.loop, asyncio.wait_for, request, self._limit)
        except TimeoutError as error:
            raise _no_answer(where, f"within {self._limit:g} seconds") from error
        except (OSError, boto.BotoCoreError, aiohttp.ClientError) as error:
            raise _translated(error, self._bucket, where) from error
        except ValueError as error:
            raise UsageError(f"{where}: {error}: check AWS_ENDPOINT_URL and AWS_DEFAULT_REGION") from error
        return result


def _translated(error: Exception, bucket: str, where: str) -> StoreError:
    response = getattr(error.__cause__, "response", None)
    if isinstance(response, dict):
        told = response.get("Error", {})
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return explain(Answer(status, str(told.get("Code", "")), str(told.get("Message", ""))), bucket, where)
    if isinstance(error, _NO_KEYS):
        return StoreDenied(f"{where}: {error}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    if isinstance(error, _NO_ANSWER):
        return _no_answer(where, str(error))
    return StoreError(f"{where}: {error}")


def _no_answer(where: str, why: str) -> StoreUnavailable:
    return StoreUnavailable(f"{where}: no answer: {why}: check AWS_ENDPOINT_URL and the network, then try again")
