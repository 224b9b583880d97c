/* What tiles.h asks of the hardware, in plain C, so that the code which uses tiles runs anywhere. */
#ifndef LMC_TILES_H
#define LMC_TILES_H
#define HAVE_TILES
#include <stdint.h>
#include <string.h>

static __thread struct {
    int rows, bytes;
    uint32_t words[16][16];
} tiles[8];

static inline int ask_for_tiles(void) { return 1; }

static inline void shape_tiles(const int *rows, const int *bytes) {
    memset(tiles, 0, sizeof tiles);
    for (int tile = 0; tile < 8; tile++) {
        tiles[tile].rows = rows[tile];
        tiles[tile].bytes = bytes[tile];
    }
}

static inline void load_tile(int tile, const void *from, int64_t stride) {
    for (int row = 0; row < tiles[tile].rows; row++)
        memcpy(tiles[tile].words[row], (const char *)from + row * stride, (size_t)tiles[tile].bytes);
}

static inline void store_tile(int tile, void *to, int64_t stride) {
    for (int row = 0; row < tiles[tile].rows; row++)
        memcpy((char *)to + row * stride, tiles[tile].words[row], (size_t)tiles[tile].bytes);
}

static inline float tile_half(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

/* The hardware faults where shapes do not match. */
static inline void multiply_tiles(int sum, int left, int right) {
    if (tiles[sum].rows != tiles[left].rows || tiles[left].bytes != 4 * tiles[right].rows
        || tiles[sum].bytes != tiles[right].bytes || !tiles[sum].rows)
        __builtin_trap();
    for (int row = 0; row < tiles[sum].rows; row++)
        for (int column = 0; column < tiles[sum].bytes / 4; column++) {
            float total = tile_half(tiles[sum].words[row][column]);
            for (int pair = 0; pair < tiles[right].rows; pair++) {
                uint32_t a = tiles[left].words[row][pair], b = tiles[right].words[pair][column];
                total += tile_half(a << 16) * tile_half(b << 16) + tile_half(a & 0xffff0000u) * tile_half(b & 0xffff0000u);
            }
            memcpy(&tiles[sum].words[row][column], &total, 4);
        }
}

static inline void release_tiles(void) {}
#endif
