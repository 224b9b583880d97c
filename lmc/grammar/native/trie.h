/* A vocabulary as a tree of the bytes of its tokens, in depth-first order. */
#ifndef LMC_TRIE_H
#define LMC_TRIE_H

#include <stdint.h>

enum { DEAD = -1, UNKNOWN = -2 };

typedef struct {
    int32_t end;    /* the first node after this one's subtree; children begin right behind the node */
    int32_t token;  /* the lowest token that ends here, or -1 */
    uint32_t label; /* depth << 9 | whether more tokens end here << 8 | the byte that leads here */
} trie_node;

/* What is below the parent of a node on the side of the node: enough to see that all of it may come. */
typedef struct {
    uint64_t groups; /* the groups of all bytes there, that of the node among them */
    int32_t first;   /* tokens before the node in the order of their bytes */
    int32_t height;  /* bytes on the longest way down, that of the node among them */
} subtree;

enum { MORE_TOKENS = 1u << 8, DEPTH_SHIFT = 9 };

#endif
