/* A source that says all that `read` may say, one after the other: a fragment, idle marks by number and by time, the end. */
#include <stdio.h>
#include <stdlib.h>
#include <weir.h>

static uint64_t first;
static int step;

static int configure(void *context, const weir_settings *settings) {
    const char *said = weir_parameter("first");
    (void)context, (void)settings;
    first = said == NULL ? 0 : strtoull(said, NULL, 10);
    return weir_parameter("second") != NULL;
}

static weir_reading read_device(void *context, void *slot, size_t size, weir_head *head, size_t *len) {
    (void)context, (void)slot, (void)size;
    switch (step++) {
    case 0:
        head->number = first;
        head->flags = WEIR_HAS_NUMBER;
        *len = 0;
        return WEIR_READ_COMMITTED;
    case 1:
        head->number = first + 1;
        return WEIR_READ_IDLE;
    case 2:
        head->begin = 7000;
        return WEIR_READ_IDLE;
    default:
        return WEIR_READ_END;
    }
}

int main(int argc, char **argv) {
    weir_settings settings = {0};
    weir_source source = {.configure = configure, .read = read_device};
    const char *at = weir_arguments(argc, argv, &settings);
    if (at == NULL || weir_run(at, &settings, &source) != WEIR_OK) {
        fprintf(stderr, "%s\n", weir_error(NULL));
        return 1;
    }
    return 0;
}
