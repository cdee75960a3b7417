"""Runs an algorithm as a processing task of Weir's event filter: ``python -m weir.pt FILE.py:Class``.

Started by Weir, with a socket as standard input; the protocol is described in the Rust crate ``processing``.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import inspect
import json
import mmap
import os
import signal
import socket
import struct
import sys
import traceback
from typing import Any, Callable

import numpy as np

from weir.decision import Decision, Window
from weir.event import Event, Setup

_VERSION = 2
_SETUP, _EVENTS = 1, 2
_HELLO, _READY, _UNABLE, _ANSWERS = 1, 2, 3, 4
_REJECTED, _ACCEPTED, _FAILED = 0, 1, 2
_EXCEPTION, _MEMORY, _BAD_ANSWER = 0, 1, 2

_HEADER = struct.Struct("<HHI")
_GIVEN = struct.Struct("<QII")
_ANSWER = struct.Struct("<QBBHIQQII")
_WINDOW = struct.Struct("<QQI")
_PR_SET_PDEATHSIG = 1
_FRAME_BYTES = 1 << 17
_RESERVE_BYTES = 8 << 20
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class _BadAnswer(Exception):
    """What ``process`` returned is no decision."""


def main() -> int:
    """Serves the owner until it closes the socket; the exit status."""
    if len(sys.argv) != 2:
        print("usage: python -m weir.pt FILE.py:Class | package.module:Class", file=sys.stderr)
        return 1
    owner = _take_socket()
    if owner is None:
        print("weir.pt is a processing task: it is started by Weir, with a socket as standard input", file=sys.stderr)
        return 1
    owner.send(_HEADER.pack(_HELLO, _VERSION, 0))
    frame, descriptors, _, _ = socket.recv_fds(owner, _FRAME_BYTES, 2)
    if not frame:
        return 0
    kind, version, _ = _HEADER.unpack_from(frame)
    if (kind, version) != (_SETUP, _VERSION) or len(descriptors) != 2:
        print(f"weir.pt speaks version {_VERSION} of the protocol, the owner {version}", file=sys.stderr)
        return 1
    setup = json.loads(frame[_HEADER.size :])
    memory = mmap.mmap(descriptors[0], setup["slots"] * setup["slot_bytes"], mmap.MAP_SHARED, mmap.PROT_READ)
    progress = memoryview(mmap.mmap(descriptors[1], 8)).cast("Q")
    for descriptor in descriptors:
        os.close(descriptor)
    try:
        process, offsets = _make(sys.argv[1], setup)
    except Exception as error:
        if _their_frames(error):
            traceback.print_exc()
        owner.send(_HEADER.pack(_UNABLE, 0, 0) + _describe(error).encode(errors="replace")[: setup["message_bytes_max"]])
        return 1
    # What the program and its libraries made will stay: it need not be looked at again and again.
    gc.collect()
    gc.freeze()
    owner.send(_HEADER.pack(_READY, 0, 0))
    try:
        return _Server(owner, memory, progress, setup).run(process, offsets)
    except (BrokenPipeError, ConnectionResetError):
        # The owner ends the run.
        return 0


class _Server:
    """Decides events in order and sends the answers."""

    def __init__(self, owner: socket.socket, memory: mmap.mmap, progress: Any, setup: dict[str, Any]) -> None:
        self.owner = owner
        self.memory = memory
        self.progress = progress
        self.slot_bytes = setup["slot_bytes"]
        self.result_bytes_max = setup["result_bytes_max"]
        self.message_bytes_max = setup["message_bytes_max"]
        self.windows_max = setup["windows_max"]
        self.windows_bytes_max = setup["windows_bytes_max"]
        self.answers_bytes_max = setup["frame_bytes_max"] - _HEADER.size
        # Given up when memory runs out, to have some for saying so.
        self.reserve: bytearray | None = bytearray(_RESERVE_BYTES)
        self.masks = {name: 1 << number for number, name in enumerate(setup["streams"])}

    def run(self, process: Callable[[Event], object], offsets: dict[int, int]) -> int:
        receive, memory, progress, slot_bytes = self.owner.recv, self.memory, self.progress, self.slot_bytes
        pack, header_bytes, room = _ANSWER.pack, _HEADER.size, self.answers_bytes_max
        new_event, plain_reject = Event, Decision.reject()
        answers: list[bytes] = []
        while True:
            frame = receive(_FRAME_BYTES)
            if not frame:
                return 0
            answer_after = _HEADER.unpack_from(frame)[2]
            filled = 0
            for sequence, slot, _ in _GIVEN.iter_unpack(frame[header_bytes:]):
                progress[0] = sequence
                event = new_event(memory, slot * slot_bytes, offsets)
                try:
                    decision = process(event)
                    event._end()
                    if decision is False or decision is plain_reject:
                        answer = pack(sequence, _REJECTED, 0, 0, 0, 0, 0, 0, 0)
                    else:
                        answer = self.answer(sequence, decision)
                except MemoryError as error:
                    # What is left of the algorithm is not to be trusted: the owner starts another task.
                    self.reserve = decision = None
                    event._forget()
                    self.send(answers)
                    self.send([self.failed(sequence, _MEMORY, error)])
                    return 1
                except _BadAnswer as error:
                    answer = self.failed(sequence, _BAD_ANSWER, error)
                except Exception as error:
                    event._forget()
                    answer = self.failed(sequence, _EXCEPTION, error)
                if filled + len(answer) > room:
                    self.send(answers)
                    filled = 0
                answers.append(answer)
                filled += len(answer)
                if len(answers) >= answer_after:
                    self.send(answers)
                    filled = 0
            self.send(answers)

    def send(self, answers: list[bytes]) -> None:
        if answers:
            self.owner.send(_HEADER.pack(_ANSWERS, len(answers), 0) + b"".join(answers))
            answers.clear()

    def answer(self, sequence: int, decision: object) -> bytes:
        if isinstance(decision, (bool, np.bool_)):
            return _ANSWER.pack(sequence, _ACCEPTED if decision else _REJECTED, 0, 0, 0, 0, 0, 0, 0)
        if not isinstance(decision, Decision):
            raise _BadAnswer(f"process() returned {decision!r:.100}: expected a weir.Decision, True or False")
        mask = 0
        for stream in decision.streams:
            known = self.masks.get(stream)
            if known is None:
                raise _BadAnswer(f"process() chose the stream {stream!r}: expected some of {tuple(self.masks)}")
            mask |= known
        result = decision.result
        if len(result) > self.result_bytes_max or len(result) % 4:
            raise _BadAnswer(
                f"process() returned a result of {len(result)} bytes: expected whole 32-bit words, at most "
                f"{self.result_bytes_max} bytes"
            )
        kind = _ACCEPTED if decision.accepted else _REJECTED
        windows = self.windows(decision.windows) if decision.windows else b""
        record = _ANSWER.pack(sequence, kind, 0, 0, mask, decision.chains, decision.input, len(result), len(windows))
        body = result + windows
        return record + body + bytes(-len(body) % 8) if body else record

    def windows(self, windows: tuple[Window, ...]) -> bytes:
        packed = []
        for window in windows:
            if not isinstance(window, Window):
                raise _BadAnswer(f"process() returned the window {window!r:.100}: expected a weir.Window")
            if any(not 0 <= source < 1 << 32 for source in window.sources):
                raise _BadAnswer(f"process() returned {window!r:.100}: expected source identifiers of 32 bits")
            packed.append(_WINDOW.pack(window.begin, window.end, len(window.sources)))
            packed.append(struct.pack(f"<{len(window.sources)}I", *window.sources))
        found = b"".join(packed)
        if len(windows) > self.windows_max or len(found) > self.windows_bytes_max:
            raise _BadAnswer(
                f"process() returned {len(windows)} windows of {len(found)} bytes: expected at most {self.windows_max}, of "
                f"at most {self.windows_bytes_max} bytes; ask for fewer and longer ones"
            )
        return found

    def failed(self, sequence: int, reason: int, error: BaseException) -> bytes:
        text = _describe(error).encode(errors="replace")[: self.message_bytes_max]
        return _ANSWER.pack(sequence, _FAILED, reason, 0, 0, 0, 0, len(text), 0) + text + bytes(-len(text) % 8)


def _take_socket() -> socket.socket | None:
    """The socket goes where nobody finds it by accident; whoever reads standard input finds nothing."""
    try:
        owner = socket.socket(fileno=os.dup(0))
        is_ours = owner.family == socket.AF_UNIX and owner.type == socket.SOCK_SEQPACKET
    except OSError:
        return None
    if not is_ours:
        return None
    _die_with_parent()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return owner


def _die_with_parent() -> None:
    import ctypes

    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")


def _make(name: str, setup: dict[str, Any]) -> tuple[Callable[[Event], object], dict[int, int]]:
    """The method ``process`` of the named class, made, and what is added to the times of sources."""
    algorithm = _load(name)
    if not callable(getattr(algorithm, "process", None)):
        raise TypeError(f"{name} has no method process(event)")
    given = Setup(setup["name"], setup["task"], tuple(setup["streams"]), setup["setup"])
    offsets = dict(given.offsets)
    made = algorithm(given) if _wants_setup(algorithm) else algorithm()
    process: Callable[[Event], object] = made.process
    return process, offsets


def _wants_setup(algorithm: Any) -> bool:
    try:
        parameters = inspect.signature(algorithm).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(parameter.kind in positional for parameter in parameters)


def _load(name: str) -> Any:
    place, colon, class_name = name.rpartition(":")
    if not colon or not place or not class_name:
        raise ValueError(f"the algorithm {name!r} is not named as FILE.py:Class or package.module:Class")
    if place.endswith(".py"):
        module = _load_file(place)
    else:
        module = importlib.import_module(place)
    try:
        return getattr(module, class_name)
    except AttributeError:
        raise AttributeError(f"{place} has no class {class_name}") from None


def _load_file(path: str) -> Any:
    if not os.path.isfile(path):
        raise FileNotFoundError(f"there is no file {path} (looked for in {os.getcwd()})")
    path = os.path.abspath(path)
    # Its neighbours can be imported, as in a script.
    sys.path.insert(0, os.path.dirname(path))
    module_name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    return module


def _describe(error: BaseException) -> str:
    """What happened, and where: the last line of the traceback that is not ours."""
    words = "".join(traceback.format_exception_only(type(error), error)).strip()
    theirs = _their_frames(error)
    if theirs:
        words += f" (in {theirs[-1].name}, {theirs[-1].filename} line {theirs[-1].lineno})"
    return words


def _their_frames(error: BaseException) -> list[traceback.FrameSummary]:
    frames = traceback.extract_tb(error.__traceback__)
    return [frame for frame in frames if not frame.filename.startswith((_PACKAGE, "<frozen"))]


if __name__ == "__main__":
    sys.exit(main())
