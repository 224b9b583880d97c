#include "intern.h"

#include <stdlib.h>
#include <string.h>

int intern_begin(interner *all) {
    *all = (interner){.room = 64, .slot_count = 256};
    all->starts = calloc((size_t)all->room + 1, sizeof *all->starts);
    all->hashes = calloc((size_t)all->room, sizeof *all->hashes);
    all->slots = malloc((size_t)all->slot_count * sizeof *all->slots);
    if (!all->starts || !all->hashes || !all->slots) return 0;
    memset(all->slots, 0xff, (size_t)all->slot_count * sizeof *all->slots);
    return 1;
}

void intern_free(interner *all) {
    free(all->words);
    free(all->starts);
    free(all->hashes);
    free(all->slots);
}

int32_t *intern_reserve(interner *all, int64_t words) {
    int64_t used = all->starts[all->count];
    if (used + words > all->word_room || !all->words) {
        int64_t room = (used + words) * 2 + 64;
        int32_t *moved = realloc(all->words, (size_t)room * sizeof *moved);
        if (!moved) return NULL;
        all->words = moved;
        all->word_room = room;
    }
    return all->words + used;
}

/* Two chains of multiplications side by side; a word more or less counts as well. */
static uint64_t hash_of(const int32_t *words, int64_t count) {
    uint64_t even = 0x243f6a8885a308d3u ^ (uint64_t)count, odd = 0x13198a2e03707344u;
    int64_t at = 0;
    for (; at + 4 <= count; at += 4) {
        uint64_t pair[2];
        memcpy(pair, words + at, sizeof pair);
        even = (even ^ pair[0]) * 0x9e3779b97f4a7c15u;
        odd = (odd ^ pair[1]) * 0xc2b2ae3d27d4eb4fu;
        even ^= even >> 32;
        odd ^= odd >> 32;
    }
    for (; at < count; at++) {
        even = (even ^ (uint32_t)words[at]) * 0x9e3779b97f4a7c15u;
        even ^= even >> 32;
    }
    uint64_t hash = (even ^ odd << 1 ^ odd >> 63) * 0xd6e8feb86659fd93u;
    return hash ^ hash >> 32;
}

static int sequences_grown(interner *all) {
    if (all->count < all->room) return 1;
    int64_t room = all->room * 2;
    int64_t *starts = realloc(all->starts, (size_t)(room + 1) * sizeof *starts);
    if (starts) all->starts = starts;
    uint64_t *hashes = realloc(all->hashes, (size_t)room * sizeof *hashes);
    if (hashes) all->hashes = hashes;
    if (!starts || !hashes) return 0;
    all->room = room;
    return 1;
}

static int slots_grown(interner *all) {
    if (all->count * 2 <= all->slot_count) return 1;
    int64_t count = all->slot_count * 2;
    int32_t *slots = malloc((size_t)count * sizeof *slots);
    if (!slots) return 0;
    memset(slots, 0xff, (size_t)count * sizeof *slots);
    for (int32_t each = 0; each < all->count; each++) {
        int64_t slot = (int64_t)(all->hashes[each] & (uint64_t)(count - 1));
        while (slots[slot] >= 0) slot = (slot + 1) & (count - 1);
        slots[slot] = each;
    }
    free(all->slots);
    all->slots = slots;
    all->slot_count = count;
    return 1;
}

int32_t intern_add(interner *all, int64_t words) {
    int64_t start = all->starts[all->count];
    uint64_t hash = hash_of(all->words + start, words);
    int64_t slot = (int64_t)(hash & (uint64_t)(all->slot_count - 1));
    for (int32_t other; (other = all->slots[slot]) >= 0; slot = (slot + 1) & (all->slot_count - 1)) {
        int64_t at = all->starts[other];
        if (all->hashes[other] == hash && all->starts[other + 1] - at == words &&
            !memcmp(all->words + at, all->words + start, (size_t)words * sizeof(int32_t)))
            return other;
    }
    if (!sequences_grown(all) || all->count == INT32_MAX) return -2;
    int32_t made = (int32_t)all->count++;
    all->hashes[made] = hash;
    all->starts[made + 1] = start + words;
    all->slots[slot] = made;
    return slots_grown(all) ? made : -2;
}
