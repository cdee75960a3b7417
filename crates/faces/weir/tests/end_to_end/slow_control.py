"""A voltage in EPICS, and whether a run has what it was. Status 0 if so.

    slow_control.py serve ADDRESS               the channel TEST:VOLTAGE, which is the time since 1970 in s, renewed five times a second
    slow_control.py check DIRECTORY             each slice of 10 ms has the voltage of its time, and never one from behind
"""

import json
import pathlib
import sys
import time

from raw_files import chunks, events, fragments


def serve(address):
    from caproto.server import PVGroup, pvproperty, run

    class Supply(PVGroup):
        voltage = pvproperty(value=0.0, name="VOLTAGE")

        @voltage.startup
        async def voltage(self, instance, async_lib):
            while True:
                await instance.write(time.time())
                await async_lib.library.sleep(0.2)

    run(Supply(prefix="TEST:").pvdb, interfaces=[address], log_pv_names=False)


def check(directory):
    found = {}
    for path in sorted(pathlib.Path(directory).glob("*.data")):
        found.update(map(fragments, events(path)))
    seen, without = set(), []
    for number, event in sorted(found.items()):
        ((_, _, _, data),) = event.values()
        said = []
        for begin, end, payload in chunks(data):
            value = json.loads(payload)["TEST:VOLTAGE"]["value"]
            assert value is None or value <= begin / 1e9, f"event {number}: {value} at {begin}"
            assert begin < (number + 1) * SLICE_NS and end > number * SLICE_NS, f"event {number}: {begin} to {end} is of another time"
            said.append(value)
        if not said:
            without.append(number)
        seen.update(said)
    voltages = sorted(seen - {None})
    # A program that stands still for seconds on a busy machine says nothing in that time.
    if len(without) > len(found) // 4 or len(voltages) < 2:
        sys.exit(f"{len(found)} events, {without} of them without any; voltages: {voltages}")


SLICE_NS = 10_000_000

{"serve": serve, "check": check}[sys.argv[1]](sys.argv[2])
