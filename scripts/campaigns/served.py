"""A `weir serve` of one partition, driven by its API, and what the system says of its processes. For scripts that measure."""

import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path


class Refused(Exception):
    """An order that was refused."""


class Served:
    """One partition and its run control, in a folder of its own."""

    def __init__(self, weir, place, text, mark, options=()):
        self.place, self.mark = Path(place), mark
        self.place.mkdir(parents=True, exist_ok=True)
        (self.place / "tmp").mkdir(exist_ok=True)
        (self.place / "p.toml").write_text(text)
        self.log = self.place / "serve.log"
        env = {**os.environ, "TMPDIR": str(self.place / "tmp"), "WEIR_FIGURES": mark}
        with open(self.log, "w") as log:
            command = [str(weir), "serve", "p.toml", "--listen", "127.0.0.1:0", *options]
            self.process = subprocess.Popen(command, cwd=self.place, stdout=log, stderr=log, env=env, start_new_session=True)
        deadline = time.monotonic() + 30
        while not (found := re.search(r"(http://[0-9.:]+)/#key=([0-9a-f]+)", self.log.read_text())):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"weir serve did not come up: {self.log.read_text()}")
            time.sleep(0.02)
        self.url, self.key = found.groups()

    def call(self, path, body=None, timeout=120):
        data = None if body is None else json.dumps(body).encode()
        head = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data=data, headers=head)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as refused:
            raise Refused(f"{path}: {refused.code} {refused.read().decode()[:500]}") from None

    def status(self):
        return self.call("/api/status")

    def order(self, verb, **more):
        """Gives an order; returns what it said and how long the answer took."""
        began = time.monotonic()
        answer = self.call(f"/api/orders/{verb}", {"name": "figures", "client": "figures", "take_over": True, **more})
        return answer, time.monotonic() - began

    def until(self, states, within=60):
        """Waits for one of these states; returns the status."""
        deadline = time.monotonic() + within
        while (status := self.status())["state"] not in states:
            if time.monotonic() > deadline:
                raise TimeoutError(f"still {status['state']} after {within} s: {status['sentence']}")
            time.sleep(0.02)
        return status

    def runs(self):
        return self.call("/api/runs")

    def applications(self):
        """The processes of applications by name."""
        found = {}
        for pid in marked(self.mark):
            words = command_of(pid).split()
            if "node" in words and "--name" in words and state_of(pid) not in ("Z", ""):
                found[words[words.index("--name") + 1]] = pid
        return found

    def end(self, within=60):
        """Ends it as Ctrl-C does; returns the exit status, and what is left of it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            status = self.process.wait(within)
        except subprocess.TimeoutExpired:
            status = None
        deadline = time.monotonic() + 5
        while (left := marked(self.mark)) and time.monotonic() < deadline:
            time.sleep(0.05)
        names = [command_of(pid)[:120] for pid in left]
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        left = [f"process {name}" for name in names] + [str(path) for path in (self.place / "tmp").rglob("*")]
        return status, left


class Listener(threading.Thread):
    """Reads `/api/events`, and keeps each with the time at which it came."""

    def __init__(self, served):
        super().__init__(daemon=True)
        self.heard, self.gone = [], False
        self.stream = urllib.request.urlopen(served.url + "/api/events", timeout=600)
        self.start()

    def run(self):
        kind = None
        try:
            for line in self.stream:
                line = line.decode().rstrip("\n")
                if line.startswith("event:"):
                    kind = line[6:].strip()
                elif line.startswith("data:"):
                    self.heard.append((time.monotonic(), kind, line[5:].strip()))
        except (OSError, ValueError):
            pass
        self.gone = True


def marked(mark):
    """Processes with this mark in their environment."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if f"WEIR_FIGURES={mark}".encode() in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    found.append(int(name))
            except OSError:
                pass
    return found


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def state_of(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[0]
    except OSError:
        return ""


def memory_of(pid):
    """Private and shared resident memory in kB, number of open files and of threads."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
        number = lambda key: int((re.search(rf"^{key}:\s+(\d+)", text, re.M) or [0, 0])[1])
        files = len(os.listdir(f"/proc/{pid}/fd"))
        return {"rss": number("VmRSS"), "anon": number("RssAnon"), "shared": number("RssShmem") + number("RssFile"),
                "files": files, "threads": number("Threads")}
    except OSError:
        return None


def cpu_of(pids):
    """Processor time of processes, user and system, in seconds."""
    user = system = 0
    for pid in pids:
        try:
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
            user, system = user + int(words[11]), system + int(words[12])
        except OSError:
            pass
    tick = os.sysconf("SC_CLK_TCK")
    return round(user / tick, 2), round(system / tick, 2)


def load():
    return Path("/proc/loadavg").read_text().split()[0]
