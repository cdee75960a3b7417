"""A monitoring task: how long fragments are, and how many an event has, at the page of `weir serve`.

python examples/monitoring/fragments.py
"""

from weir.monitor import Monitor

monitor = Monitor("fragments")
lengths = monitor.histogram(
    "fragment-length", bins=60, low=0, high=240, title="Data of a fragment", axis="words"
)
counts = monitor.histogram(
    "fragments", bins=50, low=0, high=200, title="Fragments of a built event", axis="number"
)

# Ends with the run: it is started again with the next one. Without `until_over` it waits for it.
for sample in monitor.events(stage="sfi", until_over=True):
    lengths.fill([len(fragment.data) for fragment in sample.fragments.values()])
    counts.fill(len(sample.fragments))
