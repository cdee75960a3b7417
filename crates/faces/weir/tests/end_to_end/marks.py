"""The same as marks.c, as a class."""

import weir


@weir.source
class Marks:
    def configure(self, settings):
        self.first = int(settings.get("first", 0))
        self.step = 0

    def read(self, slot):
        self.step += 1
        match self.step:
            case 1:
                return self.first, 0
            case 2:
                return weir.Idle(self.first + 1)
            case 3:
                return weir.Passed(7000)
            case _:
                raise StopIteration


Marks.main()
