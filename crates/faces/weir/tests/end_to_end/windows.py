"""Filters that ask for windows."""

import weir

MARK = b"PULSE"


class Pulses:
    """Keeps what is around the pulses that it finds, by the parameters ``before``, ``after`` and ``also``."""

    def __init__(self, setup):
        self.before, self.after = setup.parameters["before"], setup.parameters["after"]
        self.sources, self.offsets = setup.sources, setup.offsets
        self.also = [setup.sources[name] for name in setup.parameters["also"]]

    def process(self, event):
        begin, end = event.interval
        windows = []
        for source_id, fragment in event.fragments.items():
            assert source_id in self.sources.values() and fragment.interval is not None
            for chunk in fragment.chunks:
                at = chunk.data.tobytes().find(MARK)
                if at >= 0:
                    # A byte of payload stands for 100 ns.
                    assert chunk.begin == max(0, chunk.said[0] + self.offsets[source_id])
                    time = chunk.begin + 100 * at
                    first, last = max(begin, time - self.before), min(end, time + self.after)
                    if first < last:
                        windows.append(weir.Window(first, last, sources=[source_id, *self.also]))
        return weir.Decision.accept(windows=windows) if windows else weir.Decision.reject()


class Wrong:
    """Asks for windows that there are not, by the number of the slice, and for right ones in between."""

    def process(self, event):
        begin, end = event.interval
        source = min(event.fragments)
        windows = {
            1: weir.Window(end, end + 10),
            2: weir.Window(sources=[source, 77]),
            3: weir.Window(0, begin, sources=[source]),
        }
        if event.event_number == 4:
            return weir.Decision.accept(windows=[weir.Window(begin, end)] * 1025)
        return weir.Decision.accept(windows=[windows.get(event.event_number, weir.Window(begin, end))])


class Two:
    """Keeps two sources of each slice, whether they are there or not."""

    def __init__(self, setup):
        self.keep = [setup.sources["s0"], setup.sources["s3"]]

    def process(self, event):
        return weir.Decision.accept(windows=[weir.Window(*event.interval, sources=self.keep)])


class Robs:
    """Keeps two ROBs of each event with an even number, and all of the others."""

    def process(self, event):
        assert event.interval is None and not any(fragment.chunks for fragment in event.fragments.values())
        if event.ordinal % 2:
            return True
        if event.ordinal == 10:
            return weir.Decision.accept(windows=[weir.Window(0, 5)])
        return weir.Decision.accept(windows=[weir.Window(sources=sorted(event.fragments)[:2])])
