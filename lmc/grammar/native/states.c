#include "trie.h"

#include <stddef.h>
#include <string.h>

/* Classes of bytes whose columns of `rows` [count, 256] are equal: `classes[byte]`, numbered by their lowest byte, -1
 * for bytes that lead nowhere from any state. Returns how many there are. */
int32_t lmc_byte_classes(const int32_t *rows, int64_t count, int16_t *classes) {
    uint8_t lowest[256] = {0}; /* of the class of each byte */
    for (int64_t state = 0; state < count; state++) {
        const int32_t *row = rows + state * 256;
        int differs = 0;
        for (int byte = 0; byte < 256; byte++) differs |= row[byte] != row[lowest[byte]];
        if (!differs) continue;
        uint8_t before[256];
        memcpy(before, lowest, 256);
        for (int byte = 0; byte < 256; byte++) { /* the first byte of the same class with the same column so far */
            int first = before[byte];
            while (before[first] != before[byte] || row[first] != row[byte]) first++;
            lowest[byte] = (uint8_t)first;
        }
    }
    int live[256] = {0};
    for (int64_t state = 0; state < count; state++)
        for (int byte = 0; byte < 256; byte++) live[byte] |= rows[state * 256 + byte] >= 0;
    int32_t made = 0;
    for (int byte = 0; byte < 256; byte++) {
        if (!live[byte]) classes[byte] = -1;
        else classes[byte] = lowest[byte] == byte ? (int16_t)made++ : classes[lowest[byte]];
    }
    return made;
}

/* Numbers the states that are reached from 0 breadth first, by ascending bytes: `order[new]` is the old number, and
 * `numbers[old]` the new one, -1 for a state that is not reached. `bytes` holds one byte of each class. Returns how many
 * are reached. */
int64_t lmc_number_states(const int32_t *rows, const uint8_t *bytes, int32_t classes, int64_t count, int32_t *order,
                          int32_t *numbers) {
    for (int64_t state = 0; state < count; state++) numbers[state] = -1;
    int64_t made = 1;
    order[0] = numbers[0] = 0;
    for (int64_t at = 0; at < made; at++) {
        const int32_t *row = rows + (size_t)order[at] * 256;
        for (int32_t class = 0; class < classes; class++) {
            int32_t next = row[bytes[class]];
            if (next < 0 || numbers[next] >= 0) continue;
            numbers[next] = (int32_t)made;
            order[made++] = next;
        }
    }
    return made;
}

/* The rows by class and new number: `columns` [classes, made]. */
void lmc_columns(const int32_t *rows, const uint8_t *bytes, int32_t classes, const int32_t *order, int64_t made,
                 const int32_t *numbers, int32_t *columns) {
    for (int64_t state = 0; state < made; state++) {
        const int32_t *row = rows + (size_t)order[state] * 256;
        for (int32_t class = 0; class < classes; class++) {
            int32_t next = row[bytes[class]];
            columns[class * made + state] = next < 0 ? DEAD : numbers[next];
        }
    }
}
