"""Prometheus metrics of a server, with the nouns of vLLM and SGLang."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from starlette.types import Scope

from lmc.runtime.server.model import Model

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """Counts requests; the totals of the engine are read when they are asked for."""

    def __init__(self, model: Model) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "lmc:requests", "Requests by route and status.", ["route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "lmc:e2e_request_latency_seconds",
            "Seconds from the request to the end of its answer.",
            ["route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._registry.register(_EngineTotals(model))

    def finished(self, scope: Scope, status: int, seconds: float, served: Any) -> None:
        """Count a request that has ended."""
        del served
        route = getattr(scope.get("route"), "path", None) or "?"
        self._requests.labels(route, str(status or 499)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)


class _EngineTotals:
    """Reads the statistics of the engine."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def collect(self) -> Iterator[Any]:
        """Yield the metrics of the engine."""
        model, totals = self._model, self._model.engine.statistics
        for name, meaning, value in (
            ("lmc:prompt_tokens", "Prompt tokens of the requests that succeeded.", totals.prompt_tokens),
            ("lmc:generation_tokens", "Generated tokens.", totals.generated_tokens),
            ("lmc:prefix_cache_queries", "Prompt tokens that were looked up in the cache.", totals.prompt_tokens),
            ("lmc:prefix_cache_hits", "Prompt tokens that were found in the cache.", totals.cached_tokens),
            ("lmc:prefill_tokens", "Tokens that were computed and not generated.", totals.prefilled_tokens),
            ("lmc:evicted_tokens", "Tokens that were evicted from the cache.", totals.evicted_tokens),
            ("lmc:num_preemptions", "Sequences that gave their pages back before their end.", totals.preemptions),
            ("lmc:engine_steps", "Steps of the engine.", totals.steps),
        ):
            yield CounterMetricFamily(name, meaning, value=value)
        asked, most = model.in_flight + model.batched, model.engine.info.max_running
        running = asked if most is None else min(asked, most)
        yield GaugeMetricFamily("lmc:num_requests_running", "Generations that run, at most.", value=running)
        yield GaugeMetricFamily("lmc:num_requests_waiting", "Generations beyond those.", value=asked - running)
