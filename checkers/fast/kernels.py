"""The compiled loops. They know bits, decisions and moves; what these mean is `tabulation.py`'s.

Those that `compiler.py` makes C functions of are undecorated, and give a number. Arrays come one by
one, not as the tuples of `arrays.py`: numba counts references to what it takes out of a tuple, at
each use. Several threads run `expand_one` or `expand_many` on one store at the
same time: they claim rows, slots and places in the log by atomic instructions.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from syncproof.checkers.fast.arrays import (
    AHEAD,
    COUNT,
    FIRST_LEAF,
    HAS_FAILED,
    MOST_MOVES,
    MOST_REQUESTS,
    NEXT,
    PENDING,
    REQUESTED,
    REQUESTS,
    TERMINALS,
    UNKNOWN,
)
from syncproof.checkers.fast.intrinsics import (
    atomic_add,
    atomic_load,
    compare_and_swap,
    make_moves,
    multiply_high,
    prefetch,
)

FIRST_FACTOR = np.uint64(0x9E3779B97F4A7C15)
SECOND_FACTOR = np.uint64(0xD1B54A32D192ED03)
ZERO, ONE = np.uint64(0), np.uint64(1)
HALF = np.uint64(32)
LOWER = np.uint64(0xFFFFFFFF)
BUSY = np.uint64(0xFFFFFFFFFFFFFFFF)
TWO, THREE, FOUR, FIVE = np.uint64(2), np.uint64(3), np.uint64(4), np.uint64(5)
SIX, SEVEN, EIGHT, TWELVE = np.uint64(6), np.uint64(7), np.uint64(8), np.uint64(12)
SIX_BITS = np.uint64(63)

inlined = njit(forceinline=True, error_model="numpy")
"""What is left to be called could raise, as far as the compiler knows."""


@inlined
def mixed(word, seed):
    """A hash of two words."""
    one, other = word ^ FIRST_FACTOR, seed ^ SECOND_FACTOR
    return (one * other) ^ multiply_high(one, other)


@inlined
def hash_of(words, first, width):
    """A hash of ``width`` words, each mixed by itself so that none waits for another."""
    found = ZERO
    for i in range(np.uint64(width)):
        found ^= mixed(words[np.uint64(first) + i], i)
    return mixed(found, found)


@inlined
def leaf_of(program, at, words, first):
    """Where the decisions from ``at`` on lead in a state: a leaf, or nothing known; and from
    which place of the program."""
    place = ZERO
    while at > 0:
        head = np.uint64(program[np.uint64(at)])
        word = words[np.uint64(first) + (head >> TWELVE)]
        code = (word >> ((head >> SIX) & SIX_BITS)) & ((ONE << (head & SIX_BITS)) - ONE)
        place = np.uint64(at) + ONE + code
        at = np.int64(program[place])
    return at, np.int64(place)


@inlined
def is_less(one, first, other, second, width):
    """Whether one state comes before another."""
    for i in range(width):
        if one[first + i] != other[second + i]:
            return one[first + i] < other[second + i]
    return False


@inlined
def keep_least(kept, at, log, first, width, is_first):
    """Keep the state at ``log[first]`` if it is the first, or comes before the one that is kept."""
    if is_first or is_less(log, first, kept, at, width):
        for i in range(width):
            kept[at + i] = log[first + i]


@inlined
def races_in(leaves, reads, writes, puts, own, raced, racing, log, first, width):
    """Note the cells on which two enabled steps of the state race."""
    for r in range(reads.shape[1]):
        reading, writing, putting, race = ZERO, ZERO, ZERO, ZERO
        for leaf in leaves:
            race |= own[leaf, r] | (reading & writes[leaf, r])
            race |= (writing & reads[leaf, r]) | (putting & puts[leaf, r])
            reading |= reads[leaf, r]
            writing |= writes[leaf, r]
            putting |= puts[leaf, r]
        number = r * 64
        while race != ZERO:
            if race & ONE:
                keep_least(racing, number * width, log, first, width, raced[number] == 0)
                raced[number] = 1
            race >>= ONE
            number += 1


@inlined
def sort_members(words, first, heads, members):
    """Bring a state into the order in which what the members of an orbit hold is ascending."""
    for orbit in range(heads.shape[0]):
        bits, begin, end = np.uint64(heads[orbit, 0]), heads[orbit, 1], heads[orbit, 2]
        mask = (ONE << bits) - ONE
        for here in range(begin + 1, end):
            at = first + members[here, 0]
            code = (words[at] >> np.uint64(members[here, 1])) & mask
            to = here
            while to > begin:
                shift = np.uint64(members[to - 1, 1])
                before = (words[first + members[to - 1, 0]] >> shift) & mask
                if before <= code:
                    break
                put_bits(words, first + members[to, 0], np.uint64(members[to, 1]), mask, before)
                to -= 1
            put_bits(words, first + members[to, 0], np.uint64(members[to, 1]), mask, code)


@inlined
def put_bits(words, at, shift, mask, code):
    """Replace some bits of a word."""
    words[at] = (words[at] & ~(mask << shift)) | (code << shift)


@inlined
def ask(child, place, row, agent, program, requests, control):
    """Ask for the step that ``place`` of the program does not know, once."""
    if child == UNKNOWN:
        number = atomic_add(control, REQUESTS, np.int64(1))
        if number < MOST_REQUESTS:
            program[place] = REQUESTED
            requests[number, 0] = place
            requests[number, 1] = row
            requests[number, 2] = agent


def expand_one(
    end, room, block,
    program, roots, spans, moves, reads, writes, puts, own,
    log, slots, control,
    rows, pending, requests, terminals,
    flags, failed, raced, racing, buffer, places, leaves, recent, alone,
):  # fmt: skip
    """Expand claimed rows of one word each while there is room for what a block may bring; how many
    steps they have."""
    size = np.uint64(slots.shape[0])
    agents, listed, judges = roots.shape[0], rows.shape[0] > 0, reads.shape[1] > 0
    made = 0
    while atomic_load(control, COUNT) <= room:
        claimed = atomic_add(control, NEXT, np.int64(block))
        if claimed >= end:
            break
        used = 0
        for item in range(claimed, min(claimed + block, end)):
            row = rows[item] if listed else item
            state, before, is_known, failing = log[row], used, True, 0
            for agent in range(agents):
                at, place = np.int64(roots[agent]), ZERO
                while at > 0:
                    head = np.uint64(program[np.uint64(at)])
                    code = state >> ((head >> SIX) & SIX_BITS)
                    place = np.uint64(at) + ONE + (code & ((ONE << (head & SIX_BITS)) - ONE))
                    at = np.int64(program[place])
                if at > FIRST_LEAF:
                    ask(at, place, row, agent, program, requests, control)
                    is_known = False
                    continue
                leaf = FIRST_LEAF - at
                if judges:
                    leaves[agent] = leaf
                span = spans[np.uint64(leaf)]
                failing |= span & 1
                move, to = np.uint64(span >> 20), np.uint64(used)
                used += (span >> 1) & MOST_MOVES
                while True:  # four at once, some of them in vain, as a branch would cost more
                    make_moves(buffer, np.int64(to), state, moves, np.int64(move))
                    to, move = to + FOUR, move + FOUR
                    if np.int64(to) >= used:
                        break
            if not is_known:
                pending[atomic_add(control, PENDING, np.int64(1))] = row
                used = before
                continue
            if used == before:
                terminals[atomic_add(control, TERMINALS, np.int64(1))] = row
            if failing:
                keep_least(failed, 0, log, row, 1, flags[HAS_FAILED] == 0)
                flags[HAS_FAILED] = 1
            if judges:
                races_in(leaves, reads, writes, puts, own, raced, racing, log, row, 1)
        made += used
        unseen, last = ZERO, np.uint64(recent.shape[0] - 1)
        for i in range(used):
            word = buffer[i]
            near = ((word * FIRST_FACTOR) >> HALF) & last
            is_new = recent[near] != word
            recent[near] = buffer[unseen] = word
            unseen += np.uint64(is_new)
        for i in range(unseen):
            places[i] = multiply_high(mixed(buffer[i], buffer[i]), size)
            prefetch(slots, np.int64(places[i]))
        fresh = 0
        for i in range(unseen):
            if insert_one(buffer[i], np.int64(places[i]), slots, alone):
                buffer[fresh] = buffer[i]
                fresh += 1
        to = atomic_add(control, COUNT, np.int64(fresh))
        for i in range(fresh):
            log[to + i] = buffer[i]
    return made


@inlined
def insert_one(word, place, slots, alone):
    """Put a state of one word into the table; whether it was not there. Whoever is alone needs no
    atomic instruction, which takes as long as the rest."""
    wanted = word + ONE
    while True:
        found = atomic_load(slots, place)
        if found == ZERO:
            if alone:
                slots[place] = wanted
                return True
            found = compare_and_swap(slots, place, ZERO, wanted)
            if found == ZERO:
                return True
        if found == wanted:
            return False
        place += 1
        if place == slots.shape[0]:
            place = 0


def expand_many(
    end, room, block, width, heads, members,
    program, roots, spans, moves, reads, writes, puts, own,
    log, slots, control,
    rows, pending, requests, terminals,
    flags, failed, raced, racing, buffer, places, leaves, recent,
):  # fmt: skip
    """`expand_one` for states of several words."""
    size, wide = np.uint64(slots.shape[0]), np.uint64(width)
    agents, listed, judges = roots.shape[0], rows.shape[0] > 0, reads.shape[1] > 0
    made = 0
    while atomic_load(control, COUNT) <= room:
        claimed = atomic_add(control, NEXT, np.int64(block))
        if claimed >= end:
            break
        used = 0
        for item in range(claimed, min(claimed + block, end)):
            row = rows[item] if listed else item
            state, before, is_known, failing = row * width, used, True, 0
            for agent in range(agents):
                at, place = leaf_of(program, np.int64(roots[agent]), log, state)
                if at > FIRST_LEAF:
                    ask(at, place, row, agent, program, requests, control)
                    is_known = False
                    continue
                leaf = FIRST_LEAF - at
                leaves[agent] = leaf
                span = spans[leaf]
                failing |= span & 1
                to, used = used * width, used + ((span >> 1) & MOST_MOVES)
                move = (span >> 20) * width
                while to < used * width:
                    for i in range(wide):
                        keep, bits = moves[0, np.uint64(move) + i], moves[1, np.uint64(move) + i]
                        buffer[np.uint64(to) + i] = (log[np.uint64(state) + i] & keep) | bits
                    sort_members(buffer, to, heads, members)
                    to, move = to + width, move + width
            if not is_known:
                pending[atomic_add(control, PENDING, np.int64(1))] = row
                used = before
                continue
            if used == before:
                terminals[atomic_add(control, TERMINALS, np.int64(1))] = row
            if failing:
                keep_least(failed, 0, log, state, width, flags[HAS_FAILED] == 0)
                flags[HAS_FAILED] = 1
            if judges:
                races_in(leaves, reads, writes, puts, own, raced, racing, log, state, width)
        made += used
        unseen, last = ZERO, np.uint64(recent.shape[0] // width - 1)
        for i in range(used):
            first = np.uint64(i) * wide
            key = hash_of(buffer, first, wide)
            near = (key & last) * wide
            if not is_same(recent, near, buffer, first, wide):
                for j in range(wide):
                    word = buffer[first + j]
                    recent[near + j] = buffer[unseen * wide + j] = word
                places[unseen] = key
                prefetch(slots, np.int64(multiply_high(key, size)))
                unseen += ONE
        for i in range(unseen):  # where the whole states are that may be these
            found = slots[np.int64(multiply_high(places[i], size))]
            if (found & ~LOWER) == (places[i] << HALF) and found != ZERO:
                prefetch(log, (np.int64(found & LOWER) - 1) * width)
        for i in range(unseen):
            insert_many(buffer, i * width, width, places[i], log, slots, control)
    return made


@inlined
def insert_many(words, first, width, key, log, slots, control):
    """Put a state of several words into the table unless it is there."""
    place = np.int64(multiply_high(key, np.uint64(slots.shape[0])))
    tag = (key << HALF) & ~LOWER
    while True:
        found = atomic_load(slots, place)
        if found == ZERO:
            found = compare_and_swap(slots, place, ZERO, BUSY)
            if found == ZERO:
                row = atomic_add(control, COUNT, np.int64(1))
                for i in range(width):
                    log[row * width + i] = words[first + i]
                compare_and_swap(slots, place, BUSY, tag | np.uint64(row + 1))
                return
        while found == BUSY:
            found = atomic_load(slots, place)
        if (found & ~LOWER) == tag:
            row = np.int64(found & LOWER) - 1
            if is_same(words, first, log, row * width, width):
                return
        place += 1
        if place == slots.shape[0]:
            place = 0


@inlined
def is_same(one, first, other, second, width):
    """Whether two states are equal."""
    same = True
    for i in range(np.uint64(width)):
        same &= one[np.uint64(first) + i] == other[np.uint64(second) + i]
    return same


def fill_table(count, width, log, slots, keys):
    """Put the first ``count`` rows of the log into an empty table; ``keys`` is room to work in."""
    size = np.uint64(slots.shape[0])
    for begin in range(0, count, AHEAD):
        end = min(count, begin + AHEAD)
        for row in range(begin, end):
            first = row * width
            key = mixed(log[row], log[row]) if width == 1 else hash_of(log, first, width)
            keys[row - begin] = key
            prefetch(slots, np.int64(multiply_high(key, size)))
        for row in range(begin, end):
            key = keys[row - begin]
            place = np.int64(multiply_high(key, size))
            while slots[place] != ZERO:
                place = place + 1 if place + 1 < slots.shape[0] else 0
            tagged = ((key << HALF) & ~LOWER) | np.uint64(row + 1)
            slots[place] = log[row] + ONE if width == 1 else tagged
    return count


def spread_table(end, slots, taken):
    """Bring a table of states of one word to its new size, in place; up to ``end`` its slots are as
    they were before. Gives 0, or how far it came when a run is too long for ``taken``.

    A place grows with its hash. From the last state to the first, one whose place is at ``end`` or
    above is put there, where nothing moves any more. Where that is not so, or nothing is free up to
    the end of the table, all that is left of a run of full slots is taken out and put in again: it
    goes to where the run begins or above, or from the end of the table on to its beginning. There
    it comes to lie behind the first run, and is taken out with that one.
    """
    size = np.uint64(slots.shape[0])
    while end > 0:
        if slots[end - 1] == ZERO:
            end -= 1
            continue
        word = slots[end - 1] - ONE
        place = np.int64(multiply_high(mixed(word, word), size))
        if place >= end:
            while place < slots.shape[0] and slots[place] != ZERO:
                place += 1
            if place < slots.shape[0]:
                end -= 1
                slots[end] = ZERO
                slots[place] = word + ONE
                continue
        begin = end
        while begin > 0 and slots[begin - 1] != ZERO:
            begin -= 1
        if end - begin > taken.shape[0]:
            break
        for i in range(begin, end):
            taken[i - begin] = slots[i]
            slots[i] = ZERO
        for i in range(end - begin):
            word = taken[i] - ONE
            place = np.int64(multiply_high(mixed(word, word), size))
            while slots[place] != ZERO:
                place = place + 1 if place + 1 < slots.shape[0] else 0
            slots[place] = taken[i]
        end = begin
    return end


@inlined
def find(words, first, width, log, slots):
    """The place in the table of a state that is there."""
    size = np.uint64(slots.shape[0])
    if width == 1:
        place = np.int64(multiply_high(mixed(words[first], words[first]), size))
        while slots[place] != words[first] + ONE:
            place = place + 1 if place + 1 < slots.shape[0] else 0
        return place
    key = hash_of(words, first, width)
    tag = (key << HALF) & ~LOWER
    place = np.int64(multiply_high(key, size))
    while True:
        found = slots[place]
        if (found & ~LOWER) == tag:
            row = np.int64(found & LOWER) - 1
            if is_same(words, first, log, row * width, width):
                return place
        place = place + 1 if place + 1 < slots.shape[0] else 0
