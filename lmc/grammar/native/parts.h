/* What each state allows, put together from what the functions of tokens do to it. */
#ifndef LMC_PARTS_H
#define LMC_PARTS_H

#include "functions.h"

/* What the numbers of all fronts allow: classes, ascending, and where they lead. The numbers of a front begin at its
 * offset; those of front 0 are the states. */
typedef struct {
    int64_t *offsets; /* [fronts] */
    int64_t *starts;  /* [all numbers + 1] */
    int32_t *classes, *nexts;
    int64_t *segment_starts; /* [states + 1]: the numbers of a state beside its own */
    int64_t *segments;
} parts;

void parts_free(parts *p);

/* The parts of functions: class c is function `function_of_class[c]`, or none where that is negative. Returns whether
 * there was memory; what was made is freed by the caller in any case. */
int parts_made(parts *p, const functions *f, const int32_t *function_of_class, int32_t classes);

/* The row of a state: the classes that it allows, in columns of 32, and where each leads. */
typedef struct {
    int32_t *nexts;    /* [classes], of those that are allowed */
    uint32_t *words;   /* [columns] a bit for each class */
    uint64_t *filled;  /* a bit for each column that has some */
    int32_t *columns;  /* these columns, ascending */
    int32_t used, all; /* how many they are, and how many columns there are */
} class_row;

enum { COLUMN = 32 };

/* Whether there was memory; what was made is freed by the caller in any case. */
int row_begin(class_row *row, int32_t classes);

void row_free(class_row *row);

/* Fills an empty row. `end_class` leads back to the state; negative: it is not allowed. Returns how many classes are. */
int64_t row_of_parts(const parts *p, int64_t state, int32_t end_class, class_row *row);

/* Empties it. */
void row_clear(class_row *row);

#endif
