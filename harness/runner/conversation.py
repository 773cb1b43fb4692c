"""One conversation with a server: it is talked to, and the trace is brought to its end.

Here: recording, the model's side, a private workspace, the bound of the whole, the ending. Not
here: what is said (the caller), which server it is (servers), judging (judging).
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from harness.backend.model import ScriptedModel
from harness.backend.script import Script
from harness.backend.server import ModelServer
from harness.backend.tools import ToolRow
from harness.backend.wire.responses import ResponsesEncoder
from harness.client.inbox import TargetGone
from harness.client.peer import Peer
from harness.runner.connections import ConnectionManager
from harness.runner.hygiene import Hygiene
from harness.runner.named_pipes import named_pipes
from harness.runner.run import ConversationContext, Run
from harness.runner.servers import RunningServer, Servers
from harness.scenario.ending import Ended, TraceFinisher
from harness.scenario.player import Cast, Unmet
from harness.spec.book import Book
from harness.target.overrides import places, with_overrides
from harness.target.place import RunFolder
from harness.target.profile import Bounds, Profile, ProfileError, fill
from harness.trace.names import Renamer
from harness.trace.owed import Owed
from harness.trace.recorder import Recorder
from harness.trace.trace import End, Header
from harness.transport.base import Transport

# A conversation needs a few thousand messages at most; beyond this a server floods.
MAX_FRAMES = 100_000

Talk = Callable[[ConversationContext], Awaitable[Unmet | None]]


@dataclass(frozen=True, slots=True)
class Needs:
    """What a conversation needs beside the server as the profile has it.

    `files` of the working folder (path -> bytes), its `pipes` and which of them are `told` by
    commands (see pipes), `config` of the home, more than one connection.
    """

    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    pipes: Sequence[str] = ()
    told: Sequence[str] = ()
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    several_clients: bool = False


class Conversations:
    """Holds one conversation after the other with the server of a worker."""

    def __init__(
        self,
        profile: Profile,
        bounds: Bounds,
        book: Book,
        folder: RunFolder,
        models: ModelServer,
        servers: Servers,
        hygiene: Hygiene,
    ) -> None:
        self._profile = profile
        self._bounds = bounds
        self._book = book
        self._folder = folder
        self._models = models
        self._servers = servers
        self._hygiene = hygiene
        self._renamer = Renamer(profile.names, book.paths_of)

    async def hold(
        self,
        name: str,
        scripts: Mapping[str, Script],
        talk: Talk,
        *,
        needs: Needs | None = None,
        markers: Mapping[str, str] | None = None,
        strict_model: bool = False,
        ending: Bounds | None = None,
    ) -> Run:
        """Hold one conversation. Raises `SetupFailed` where the server cannot be used at all.

        `ending` are other bounds for its end than the profile's.
        """
        began = time.monotonic()
        recorder, owed = self._recorder(name)
        needs = needs or Needs()
        cwd = self._folder.fresh("work")
        stands_for = places(self._profile, cwd)
        _furnish(cwd, {fill(name, stands_for): data for name, data in needs.files.items()})
        profile = with_overrides(
            self._profile, config=needs.config, places=stands_for, several=needs.several_clients
        )
        live = await self._servers.ready(recorder, profile)
        model = ScriptedModel(
            scripts,
            ResponsesEncoder(),
            mark=recorder.mark,
            markers=markers,
            strict=strict_model,
            tools=[ToolRow(**tool.model_dump()) for tool in self._profile.tools],
            outcomes={str(name): texts for name, texts in self._profile.outcomes.items()},
            loose=self._profile.capabilities == "probe",
        )
        wires = self._wires(live, recorder)
        stage = ConversationContext(live.peer, model, cwd, Cast(), wires)
        place = {"home": str(live.home), "cwd": str(stage.cwd), "server-cwd": str(Path.cwd())}
        recorder.mark("place", place)
        self._models.serve(model)
        before = live.process.children()
        async with named_pipes(cwd, needs.pipes, needs.told, model.gates):
            unmet = await self._bounded(talk, stage)
            await self._models.listen(listening=True)
            if live is not wires.live:
                live, before = wires.live, wires.at_restart
            before |= wires.of_connection
            await wires.close_further(self._bounds.step)
            model.gates.open_all()
            end = TraceFinisher(
                live.peer,
                model,
                owed,
                bounds=ending or self._bounds,
                barrier=(self._profile.barrier, _barrier_params(stage.cast)),
                children=live.process.children,
                before=before,
            )
            ended = Ended(End.CLOSED) if wires.main_is_closed else await end.run()
        self._models.serve(None)
        _close_trace(recorder, live.peer, ended)
        run = Run(
            trace=recorder.trace,
            cast=stage.cast,
            unmet=unmet,
            ended=ended,
            model=model,
            cwd=stage.cwd,
            stderr=live.process.stderr_tail(),
            seconds=time.monotonic() - began,
            bound=self._bounds.scenario,
            overflow=live.peer.overflow,
        )
        if ended.end is End.EXITED:
            run.status = await self._servers.status(live)
        self._hygiene.lines(run.trace)
        live.watch.conversation_over(run.trace, died=run.died)
        fitted_to_it = profile is not self._profile
        # What its own configuration started may live as long as the server does.
        if ended.end is End.QUIESCENT and not fitted_to_it:
            left = await live.process.lingering(before, self._bounds.settle)
            self._hygiene.lingering(name, left)
        if unmet is not None or ended.end is not End.QUIESCENT or fitted_to_it:
            await self._servers.retire()
            run.stderr = live.process.stderr_tail()
        return run

    async def _bounded(self, talk: Talk, stage: ConversationContext) -> Unmet | None:
        with anyio.move_on_after(self._bounds.scenario):
            return await talk(stage)
        message = f"the scenario took longer than its bound of {self._bounds.scenario:g} s"
        return Unmet("timeout", "scenario", 1, message)

    def _wires(self, live: RunningServer, recorder: Recorder) -> ConnectionManager:
        servers = self._servers

        async def again(connection: str) -> RunningServer:
            return await servers.again(recorder, connection, live)

        async def further() -> Transport:
            process = (servers.live or live).process
            try:
                return await process.connect(self._bounds.step)
            except ProfileError as error:
                raise TargetGone(str(error)) from error

        return ConnectionManager(
            live,
            recorder,
            again=again,
            pump=servers.pump,
            open_transport=further if live.process.address else None,
            greet=servers.greet,
            model=self._models.listen,
        )

    def _recorder(self, name: str) -> tuple[Recorder, Owed]:
        recorder = Recorder(self._header(name), renamer=self._renamer, max_frames=MAX_FRAMES)
        owed = Owed()
        recorder.listeners.append(owed.feed)
        recorder.mark_listeners.append(owed.feed_mark)
        return recorder, owed

    def _header(self, name: str) -> Header:
        declared = self._profile.capabilities
        return Header(
            target=" ".join(self._profile.command),
            profile=self._profile.name,
            scenario=name,
            spec_revision=self._book.revision,
            names=dict(self._profile.names),
            capabilities=[] if declared == "probe" else list(declared),
        )


def _furnish(cwd: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        file = cwd / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _close_trace(recorder: Recorder, peer: Peer, ended: Ended) -> None:
    recorder.trace.end = ended.end
    if peer.transport.partial:
        head = peer.transport.partial[:80].decode("utf-8", "backslashreplace")
        recorder.mark("partial-line", {"head": head, "bytes": len(peer.transport.partial)})


def _barrier_params(cast: Cast) -> dict[str, object]:
    # Without a thread of its own the barrier names one that does not exist: an error is an answer.
    return {"threadId": next(iter(cast.threads.values()), "thr_0")}
