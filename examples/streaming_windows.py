"""A software trigger for slices of time: whatever is large enough is a pulse, and what is around pulses is recorded."""

import weir


class Pulses:
    def __init__(self, setup: weir.Setup) -> None:
        self.size = setup.parameters["size"]                                    # bytes of a chunk that make a pulse
        self.around = setup.parameters["around"]                                # ns before and behind it
        self.always = [setup.sources[name] for name in setup.parameters["always"]]

    def process(self, event: weir.Event) -> weir.Decision:
        windows = []
        for source, fragment in event.fragments.items():
            for chunk in fragment.chunks:
                if len(chunk.data) > self.size:
                    begin, end = max(0, chunk.begin - self.around), chunk.end + self.around
                    windows.append(weir.Window(begin, end, sources=[source, *self.always]))
        return weir.Decision.accept(windows=windows) if windows else weir.Decision.reject()
