"""The token scheduler, its contracts, and what is proved and refuted of them (UBEP section 3.3)."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate, product

import numpy as np
import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from syncproof.checkers.scheduler import (
    SchedulerQuestion,
    aiv_split,
    capacity,
    check,
    hardness,
    program,
    rank_order,
)
from syncproof.checkers.scheduler.contracts import CONTRACTS
from syncproof.checkers.scheduler.exhaustive import Sizes, inputs, smallest_counterexample
from syncproof.checkers.scheduler.figure14 import EXTRA_US, best_sizes
from syncproof.checkers.scheduler.induction import induction, turn
from syncproof.checkers.scheduler.question import Load
from syncproof.checkers.scheduler.symbolic import check_search, leaves
from syncproof.checkers.scheduler.vectorised import broken_contracts
from syncproof.models.errors import UserError
from syncproof.protocols.token_scheduler import (
    SCHEDULERS,
    CoreView,
    Routing,
    RoutingData,
    Scheduler,
    dealt_before,
    hop_classes,
    hop_sorted_order,
    hop_table,
    rounded_up_slice,
    routing_of,
    scheduler,
    staggered_slices,
    transposed_order,
)
from syncproof.protocols.token_scheduler_ranks import (
    most_senders_at_once,
    naive_order,
    rank_aware_order,
)
from syncproof.protocols.token_scheduler_search import (
    CORRECTED,
    PRINTED,
    PRINTED_FLOOR,
    Place,
    QuaternarySearch,
    find_token,
    index_of,
)
from syncproof.protocols.token_scheduler_vector import all_sends, find_all

ENDLESS_FLOOR = QuaternarySearch("floor, width", "floor", "width")
READINGS = (PRINTED, PRINTED_FLOOR, CORRECTED, ENDLESS_FLOOR)
FLOOR_FINDS_ALL = {1, 4, 7, 16, 19, 28}


def by_bisection(counts: list[int], target: int) -> tuple[int, int]:
    """The expert and offset that the prefix sums define, by the standard library's bisection."""
    before = [0, *accumulate(counts)]
    expert = bisect_right(before, target) - 1
    return expert, target - before[expert]


class TestSearch:
    """Algorithm 1 as printed, in both readings of its gap, and corrected."""

    def test_printed_loops_on_one_expert_and_one_token(self) -> None:
        """The smallest input on which the printed search does not end has one token, one expert."""
        found = smallest_counterexample(scheduler("printed"), "terminates", Sizes())
        assert found.smallest == Load((1,), (0,), 1)
        assert find_token(PRINTED, [0], 0, 1) is None

    def test_printed_never_ends_on_any_input(self) -> None:
        """With the ceiling no search for any token ends: by induction, and tried on small lists."""
        assert induction(PRINTED).never_terminates
        for experts in range(1, 5):
            for tokens in product(range(experts), repeat=3):
                assert all(find_token(PRINTED, tokens, t, experts) is None for t in range(3))

    def test_floor_misses_the_second_of_two_experts(self) -> None:
        """The smallest input on which the floor reading errs is one token for the second expert."""
        found = smallest_counterexample(
            scheduler("printed-floor"), "finds-expert-and-offset", Sizes()
        )
        assert found.smallest == Load((0, 1), (0, 0), 1)
        assert find_token(PRINTED_FLOOR, [1], 0, 2) == Place(0, 0)

    def test_floor_finds_every_expert_for_these_numbers_only(self) -> None:
        """z3 and plain trial agree for which numbers of experts the floor reading is right."""
        by_z3 = {n for n in range(1, 33) if check_search(PRINTED_FLOOR, n).counts is None}
        by_trial = {
            n
            for n in range(1, 33)
            if all(find_token(PRINTED_FLOOR, [e], 0, n) == (e, 0) for e in range(n))
        }
        assert by_z3 == by_trial == FLOOR_FINDS_ALL
        assert check_search(PRINTED_FLOOR, 256).counts is None
        assert check_search(PRINTED_FLOOR, 128).counts is not None

    def test_corrected_is_proved_up_to_64_experts_in_a_minute(self) -> None:
        """z3: no routing of any number of tokens to at most 64 experts breaks the search."""
        start = time.monotonic()
        assert all(check_search(CORRECTED, n).counts is None for n in range(1, 65))
        assert time.monotonic() - start < 60

    def test_corrected_is_proved_by_induction(self) -> None:
        """For any number of experts and tokens it ends, is right, and quarters the window."""
        proof = induction(CORRECTED)
        assert proof.right
        assert proof.quarters
        assert not proof.never_terminates

    def test_induction_refutes_the_other_readings(self) -> None:
        """Each faulty reading fails the condition that it should fail, and only that kind."""
        assert induction(PRINTED_FLOOR).terminates
        assert not induction(PRINTED_FLOOR).returns_right
        assert not induction(PRINTED).terminates
        assert not induction(ENDLESS_FLOOR).terminates
        assert not induction(ENDLESS_FLOOR).never_terminates

    @pytest.mark.parametrize("search", READINGS, ids=lambda search: search.name)
    def test_the_formula_is_the_program(self, search: QuaternarySearch) -> None:
        """The induction's gap, next window and loop condition are those of the Python search."""
        for width, quadrant in product(range(1, 10), (1, 2, 3, 4)):
            left = width % 3
            at = turn(search, quadrant)
            solver = z3.Solver()
            solver.add(at.axioms, at.left == left, at.right == left + width)
            assert solver.check() == z3.sat
            boundaries = search.boundaries(left, left + width)
            solver.add(
                z3.Not(
                    z3.And(
                        at.gap == search.gap(left, left + width),
                        at.new_left == boundaries[quadrant - 1],
                        at.new_right == boundaries[quadrant],
                        at.running == search.running(left, left + width),
                    )
                )
            )
            assert solver.check() == z3.unsat

    def test_each_quadrant_is_possible(self) -> None:
        """The induction's assumptions can be met in each quadrant, so it does not hold for want."""
        for quadrant in (1, 2, 3, 4):
            at = turn(CORRECTED, quadrant)
            solver = z3.Solver()
            solver.add(at.axioms, at.inside(at.left, at.right), at.running, at.taken)
            assert solver.check() == z3.sat

    def test_every_expert_is_a_leaf(self) -> None:
        """The tree of windows returns each expert exactly once, beside the branches cut off."""
        for experts in range(1, 65):
            ends = [leaf for leaf in leaves(CORRECTED, experts) if leaf.end != "impossible"]
            assert sorted(leaf.left for leaf in ends) == list(range(experts))

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.integers(0, 5), min_size=1, max_size=300), st.data())
    def test_large_inputs_agree_with_bisection(
        self, counts: list[int], data: st.DataObject
    ) -> None:
        """For large random routings the corrected search is the standard library's bisection."""
        counts = [*counts, 1]
        target = data.draw(st.integers(0, sum(counts) - 1))
        tokens = [expert for expert, count in enumerate(counts) for _ in range(count)]
        assert find_token(CORRECTED, tokens, target, len(counts)) == by_bisection(counts, target)

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.sampled_from(READINGS))
    def test_vector_is_the_scalar_search(self, counts: list[int], search: QuaternarySearch) -> None:
        """The lockstep search returns what the scalar search does, also where that is wrong."""
        tokens = [expert for expert, count in enumerate(counts) for _ in range(count)]
        targets = np.arange(len(tokens), dtype=np.int64)
        experts, offsets = find_all(search, np.array(counts, dtype=np.int64), targets)
        for target, found in enumerate(zip(experts.tolist(), offsets.tolist(), strict=True)):
            scalar = find_token(search, tokens, target, len(counts))
            assert found == ((-1, -1) if scalar is None else scalar)


class TestSlices:
    """Remapping, slices, and the contracts on all small inputs."""

    def test_corrected_keeps_every_contract_on_small_inputs(self) -> None:
        """All inputs up to 5 tokens, 3 experts, 4 cores, 3 classes keep all contracts."""
        for contract in CONTRACTS:
            found = smallest_counterexample(scheduler("corrected"), contract, Sizes(5, 3, 4, 3))
            assert found.smallest is None, found.wrong
            assert found.tried > 1000

    @pytest.mark.parametrize(
        ("name", "contract", "smallest"),
        [
            ("search-only", "per-hop-bound", Load((2, 1), (0, 1), 2)),
            ("rounded-up", "loads-differ-by-at-most-one", Load((4,), (0,), 3)),
            ("rotated", "exactly-once", Load((1, 1), (0, 0), 2)),
            ("rotated", "same-on-every-core", Load((0, 0), (0, 0), 2)),
            ("printed-floor", "exactly-once", Load((0, 1), (0, 0), 1)),
        ],
    )
    def test_readings_fail(self, name: str, contract: str, smallest: Load) -> None:
        """The search for the smallest input finds the one that the document explains."""
        assert smallest_counterexample(scheduler(name), contract, Sizes()).smallest == smallest

    def test_contracts_see_planted_faults(self) -> None:
        """Orders that lose an expert and slices that miss a token are reported."""

        class Lossy(Scheduler):
            def order(self, core: int, routing: RoutingData) -> tuple[int, ...]:
                return (0,) * len(routing.counts)

        class Short(Scheduler):
            def view(self, core: int, routing: RoutingData) -> CoreView:
                whole = super().view(core, routing)
                cut = tuple(range(piece.start, piece.stop - 1) for piece in whole.slices)
                return CoreView(whole.order, cut)

        lossy = Lossy("lossy", CORRECTED, "transposed")
        short = Short("short", CORRECTED, "transposed")
        assert smallest_counterexample(lossy, "orders-all-experts", Sizes()).smallest
        assert smallest_counterexample(short, "slices-partition", Sizes()).smallest

    def test_transposition_is_the_matrix(self) -> None:
        """Rows of the matrix are filled in turn, columns are read in turn (numpy's transpose)."""
        for cores, columns in product(range(1, 7), range(1, 7)):
            matrix = np.arange(cores * columns).reshape(cores, columns)
            assert transposed_order(cores * columns, cores) == tuple(matrix.T.ravel().tolist())

    def test_orders_are_permutations(self) -> None:
        """Also where the cores do not divide the experts, and with more cores than experts."""
        for experts, cores in product(range(1, 40), range(1, 50)):
            assert sorted(transposed_order(experts, cores)) == list(range(experts))
        assert hop_sorted_order(("b", "a", "b", "c", "a")) == (0, 2, 1, 4, 3)

    def test_dealing_is_dealing(self) -> None:
        """``dealt_before`` and its z3 formula count what dealing cards one by one counts."""
        for cores, position in product(range(1, 6), range(20)):
            for core in range(cores + 1):
                dealt = sum(card % cores < core for card in range(position))
                turns, rest = divmod(position, cores)
                formula = capacity.before(z3.IntVal(core), z3.IntVal(turns * core), z3.IntVal(rest))
                assert dealt == dealt_before(core, cores, position)
                assert dealt == z3.simplify(formula).as_long()

    def test_rounded_up_slices_partition(self) -> None:
        """Slices of ceil(m / n) tokens cover all tokens, however unevenly."""
        for cores, tokens in product(range(1, 8), range(20)):
            slices = [rounded_up_slice(core, cores, tokens) for core in range(cores)]
            assert [t for piece in slices for t in piece] == list(range(tokens))


class TestHopBound:
    """The bound ceil(V_h / n): when the printed remapping keeps it, and the fix."""

    def test_exact_condition(self) -> None:
        """Some routing breaks it iff there are two cores, two classes, more tokens than cores."""
        broken = set()
        seen = set()
        for load in inputs(Sizes(5, 3, 3, 2)):
            key = load.tokens, load.hops, load.cores
            seen.add(key)
            if CONTRACTS["per-hop-bound"](scheduler("search-only"), load):
                broken.add(key)
        for tokens, hops, cores in seen:
            order = transposed_order(len(hops), cores)
            counts = capacity.breaking_counts(order, hops, cores, tokens)
            expected = cores > 1 and tokens > cores and len(set(hops)) > 1
            assert ((tokens, hops, cores) in broken) == (counts is not None) == expected
            greatest = -(-tokens // cores)
            by_load = capacity.load_keeps_the_bound(cores, tokens, len(set(hops)), greatest)
            assert by_load != expected

    def test_staggered_slices_are_proved(self) -> None:
        """Bound, partition and loads for any number of cores, classes and tokens."""
        assert capacity.staggered() == capacity.Staggered(True, True, True)
        assert capacity.product_rules_hold()

    def test_proof_notices_a_wrong_formula(self) -> None:
        """Off by one in the rest, or twice the rest: the proof of the edges or the bound fails."""

        def late(core: z3.ArithRef, turns: z3.ArithRef, rest: z3.ArithRef) -> z3.ArithRef:
            return turns + z3.If(rest < core, rest, core + 1)

        def double(core: z3.ArithRef, turns: z3.ArithRef, rest: z3.ArithRef) -> z3.ArithRef:
            return turns + 2 * z3.If(rest < core, rest, core)

        assert not capacity.staggered(late).meets
        assert not capacity.staggered(double).within_bound

    def test_classes_must_be_staggered(self) -> None:
        """Starting the odd tokens of each class at core 0 keeps the bound but not the loads."""
        loads = [
            sum(len(staggered_slices(core, 3, (4,))[0]) for _ in range(2)) for core in range(3)
        ]
        assert max(loads) - min(loads) == 2
        staggered = [sum(map(len, staggered_slices(core, 3, (4, 4)))) for core in range(3)]
        assert max(staggered) - min(staggered) == 1

    @settings(max_examples=40, deadline=None)
    @given(
        st.lists(st.tuples(st.integers(0, 60), st.sampled_from("abc")), min_size=1, max_size=80),
        st.integers(1, 60),
    )
    def test_large_random_routings_keep_all(
        self, experts: list[tuple[int, str]], cores: int
    ) -> None:
        """The corrected scheduler keeps every contract on large random routings and hops."""
        counts, hops = zip(*experts, strict=True)
        routing = Routing(counts, hops, cores)
        assert broken_contracts(all_sends(scheduler("corrected"), routing), routing) == []

    def test_balanced_routing_at_the_papers_size(self) -> None:
        """256 experts, 48 cores, four 16-NPU nodes: even balanced routing breaks the bound."""
        routing = Routing((16,) * 256, hop_classes("one:64,two:192", 256), 48)
        printed = broken_contracts(all_sends(scheduler("search-only"), routing), routing)
        assert len(printed) >= 40
        assert all("class" in wrong for wrong in printed)
        assert broken_contracts(all_sends(scheduler("corrected"), routing), routing) == []

    def test_256_experts_4096_tokens_48_cores_in_a_second(self) -> None:
        """Computed by every core on its own and checked, with skewed routing."""
        source = random.Random(9)
        tokens = [min(int(source.paretovariate(0.5)), 256) - 1 for _ in range(4096)]
        routing = routing_of(tokens, 256, hop_classes("one:16,two:240", 256), 48)
        start = time.monotonic()
        wrong = broken_contracts(all_sends(scheduler("corrected"), routing), routing)
        assert time.monotonic() - start < 1
        assert wrong == []

    def test_vector_checks_see_lost_tokens(self) -> None:
        """The numpy contracts report what the rotated and the printed reading lose."""
        routing = Routing((1,) * 10, ("a",) * 10, 4)
        rotated = broken_contracts(all_sends(scheduler("rotated"), routing), routing)
        assert any("lost" in wrong for wrong in rotated)
        printed = broken_contracts(all_sends(scheduler("printed"), routing), routing)
        assert printed == ["10 sends of tokens that do not exist"]

    def test_vector_and_scalar_sends_agree(self) -> None:
        """Both give the same tokens to the same cores, for each scheduler that is shipped."""
        routing = Routing((3, 0, 4, 2, 1), ("a", "b", "b", "a", "c"), 3)
        for one in SCHEDULERS:
            places = [
                (core, *(place or (-1, -1)))
                for core in range(3)
                for place in one.sends(core, routing)
            ]
            vector = all_sends(one, routing)
            assert places == list(zip(*(column.tolist() for column in vector), strict=True))


class TestProgram:
    """The heuristic against the optimum of program (1), and appendix B."""

    def test_two_optimisers_agree(self) -> None:
        """z3's optimiser and brute force give one optimum on random instances."""
        source = random.Random(1)
        for _ in range(15):
            tokens = [
                program.Token(source.randrange(5), source.randrange(12))
                for _ in range(source.randrange(1, 6))
            ]
            cores = source.randrange(1, 4)
            assert program.optimum(tokens, cores) == program.optimum_by_z3(tokens, cores)

    @pytest.mark.parametrize("name", ["search-only", "corrected"])
    def test_equal_latencies_bound_the_gap(self, name: str) -> None:
        """With one latency the heuristic is within the stated gap, which some input reaches."""
        reached = set()
        for load in inputs(Sizes(5, 3, 3, 2)):
            tokens, cores = program.placed(scheduler(name), load, 2, {0: 3, 1: 10})
            gap = program.cost(tokens, cores) - program.optimum(tokens, load.cores)
            allowed = program.equal_latency_gap(load.tokens, load.cores, 2)
            assert 0 <= gap <= allowed
            reached.add((gap, allowed))
        assert (2, 2) in reached

    def test_where_cores_divide_tokens_all_assignments_are_optimal(self) -> None:
        """With one latency and n | m the objective cannot tell assignments apart."""
        source = random.Random(2)
        for cores, each in ((2, 2), (2, 3), (3, 2)):
            tokens = [program.Token(4, source.randrange(9)) for _ in range(cores * each)]
            costs = {
                program.cost(tokens, chosen) for chosen in program.assignments(len(tokens), cores)
            }
            assert costs == {4 * each + max(token.rtt for token in tokens)}

    def test_unequal_latencies_cost_the_heuristic(self) -> None:
        """On unequal instances the heuristic is never below the optimum, and sometimes above."""
        source = random.Random(3)
        above = 0
        for _ in range(60):
            load = Load(tuple(source.randrange(3) for _ in range(4)), (0, 0, 1, 1), 2)
            equal, cores = program.placed(scheduler("corrected"), load, 0, {0: 4, 1: 11})
            tokens = [token._replace(latency=source.randrange(1, 9)) for token in equal]
            best = program.optimum(tokens, 2)
            assert best <= program.cost(tokens, cores)
            above += best < program.cost(tokens, cores)
        assert 0 < above < 60

    @pytest.mark.parametrize(("cores", "longest"), [(2, 4), (3, 3)])
    def test_reduction_answers_subset_sum(self, cores: int, longest: int) -> None:
        """On all small instances program (1) fits in B iff half of the sum can be chosen."""
        tried, wrong = hardness.wrongly_reduced(longest, 4, cores)
        assert wrong == []
        answers = {hardness.has_half(values) for values in hardness.instances(longest, 4)}
        assert tried > 20
        assert answers == {True, False}

    def test_reduction_needs_its_zeros(self) -> None:
        """Without the padding tokens the cardinality constraint makes the answer wrong."""
        values = (1, 1, 2, 4)
        tokens, bound = hardness.reduced(values, 2)
        assert hardness.fits(tokens, 2, bound)
        bare = [token for token in tokens if token.latency]
        assert not hardness.fits(bare, 2, bound)

    def test_reduction_refuses_odd_sums(self) -> None:
        """An odd sum is no instance of appendix B."""
        with pytest.raises(ValueError, match="even sum"):
            hardness.reduced((1, 2), 2)


class TestSplit:
    """Appendix A against the exact optimum and figure 14."""

    @pytest.mark.parametrize("ratio", [Fraction(1, 10), Fraction(1, 3), Fraction(2)])
    def test_integer_optimum_is_next_to_the_balance(self, ratio: Fraction) -> None:
        """The exact whole number is the balanced one rounded up or down, within 1 .. n - 1."""
        for experts, batch in product((64, 128, 256), (8, 32, 128)):
            split = aiv_split.Split(experts, batch, ratio)
            low = int(split.balanced)
            assert split.exact() in {min(max(size, 1), 47) for size in (low, low + 1)}

    def test_closed_form_is_too_large_by_the_relative_load(self) -> None:
        """Equation (8) over equation (5) solved is 1 + x; from x = 1 on no core is left to send."""
        split = aiv_split.Split(256, 8, Fraction(1, 4))
        assert split.closed_form / split.balanced == 1 + split.relative_load
        assert split.closed_form == split.aivs
        assert split.exact() == 24

    def test_overhead_moves_the_optimum(self) -> None:
        """A dearer start of counting leaves it more cores, and a dearer start of sending fewer."""
        plain = aiv_split.Split(128, 32, Fraction(1, 3)).exact()
        assert aiv_split.Split(128, 32, Fraction(1, 3), overhead=Fraction(3)).exact() > plain
        assert aiv_split.Split(128, 32, Fraction(1, 3), overhead=Fraction(-3)).exact() < plain

    def test_figure_14_is_read_whole(self) -> None:
        """Three maps of five rows of sixteen values, each row with a best size."""
        for ranks, rows in EXTRA_US.items():
            assert [len(row) for row in rows.values()] == [16] * 5
            assert all(best_sizes(ranks, batch) for batch in rows)
        assert [best_sizes(ranks, 128) for ranks in (64, 128, 256)] == [(1,), (2,), (4,)]

    def test_trends_have_exceptions(self) -> None:
        """Best sizes do not always fall with the batch size nor rise with the ranks."""
        exceptions = aiv_split.exceptions_to_trends()
        assert any(text.startswith("64 ranks: batch 8 -> 16") for text in exceptions)
        assert not any("batch 128" in text or "batch 64:" in text for text in exceptions)

    def test_tables(self) -> None:
        """Three tables of five rows; the fitted models miss the figure, and both lose little."""
        closed, exact = aiv_split.fitted_ratio(False), aiv_split.fitted_ratio(True)
        text = aiv_split.tables_text(closed, exact)
        assert text.count("ranks**") == 3
        rows = [row for ranks in (64, 128, 256) for row in aiv_split.table(ranks, exact)]
        assert any(row.exact_difference for row in rows)
        assert max(row.exact_extra for row in rows) < 5 < max(EXTRA_US[64][8])


class TestRankOrder:
    """HyperParallel-MoE's rank-aware reordering."""

    def test_proved_for_every_number_of_ranks(self) -> None:
        """Permutation, distinct first destinations, one sender a step: z3, N free."""
        assert rank_order.rank_order() == rank_order.RankOrder(True, True, True)

    def test_naive_order_is_refuted(self) -> None:
        """Without the rotation all ranks start alike; with two ranks already."""
        proof = rank_order.rank_order(rank_order.naive)
        assert proof == rank_order.RankOrder(True, False, False)
        assert naive_order(0, 2)[0] == naive_order(1, 2)[0]

    def test_order_is_what_was_proved(self) -> None:
        """For up to 12 ranks the shipped order has the three properties, seen by counting."""
        for ranks in range(1, 13):
            orders = [rank_aware_order(rank, ranks) for rank in range(ranks)]
            for one in (*orders, *zip(*orders, strict=True)):
                assert sorted(one) == list(range(ranks))

    def test_bound_with_unequal_tiles(self) -> None:
        """Proved for all; no small table of tile counts exceeds it."""
        assert rank_order.senders_bound_holds()
        for ranks, most in ((2, 3), (3, 2)):
            for cells in product(range(most + 1), repeat=ranks * ranks):
                tiles = [cells[row * ranks : (row + 1) * ranks] for row in range(ranks)]
                bound = rank_order.senders_bound(ranks, min(cells), max(cells))
                assert most_senders_at_once(tiles) <= bound

    def test_bound_is_reached(self) -> None:
        """For each number of ranks and range of counts some tiles reach it."""
        for ranks, fewest, more in product(range(1, 7), range(4), range(4)):
            tiles = rank_order.reaching_tiles(ranks, fewest, fewest + more)
            assert all(fewest <= cell <= fewest + more for row in tiles for cell in row)
            bound = rank_order.senders_bound(ranks, fewest, fewest + more)
            assert most_senders_at_once(tiles) == bound

    def test_equal_tiles_keep_one_sender_and_naive_has_all(self) -> None:
        """Equal counts: one sender at a time rotated, all ranks at once without."""
        tiles = [[3] * 5] * 5
        assert most_senders_at_once(tiles) == rank_order.senders_bound(5, 3, 3) == 1
        assert most_senders_at_once(tiles, rotated=False) == 5


class TestQuestion:
    """The one function behind the command."""

    def verdicts(self, name: str, experts: int, cores: int, tokens: int) -> dict[str, str]:
        hops = hop_classes(f"one:{experts // 4},two:{experts - experts // 4}", experts)
        question = SchedulerQuestion(scheduler(name), experts, cores, tokens, hops)
        return {finding.contract: finding.verdict for finding in check(question)}

    def test_corrected_is_proved(self) -> None:
        """All contracts are proved at the size of the command's example, each naming how."""
        hops = hop_classes("one:16,two:240", 256)
        findings = check(SchedulerQuestion(scheduler("corrected"), 256, 48, 128, hops))
        assert [finding.contract for finding in findings] == list(CONTRACTS)
        assert {finding.verdict for finding in findings} == {"proved"}
        assert all(finding.method and finding.scope for finding in findings)

    def test_printed_is_refuted(self) -> None:
        """As printed it does not end and breaks the hop bound; what follows is undecided."""
        verdicts = self.verdicts("printed", 256, 48, 128)
        assert verdicts["terminates"] == verdicts["per-hop-bound"] == "violated"
        assert verdicts["finds-expert-and-offset"] == verdicts["exactly-once"] == "undecided"

    def test_floor_depends_on_the_number_of_experts(self) -> None:
        """128 experts are refuted with one token; 256 are proved, for any number of tokens."""
        assert self.verdicts("printed-floor", 128, 48, 9)["exactly-once"] == "violated"
        assert self.verdicts("printed-floor", 256, 48, 9)["finds-expert-and-offset"] == "proved"

    @pytest.mark.parametrize("name", [one.name for one in SCHEDULERS])
    def test_verdicts_are_those_of_brute_force(self, name: str) -> None:
        """For small sizes no verdict is contradicted by trying all routings."""
        sizes = ((2, 3, 0, 2), (3, 2, 3, 2), (5, 2, 2, 2), (2, 3, 4, 1))
        for experts, cores, tokens, classes in sizes:
            hops = tuple(expert * classes // experts for expert in range(experts))
            loads = [
                load
                for load in inputs(Sizes(tokens, experts, cores, 3))
                if load.hops == hops and load.cores == cores
            ]
            asked = SchedulerQuestion(scheduler(name), experts, cores, tokens, hops)
            for finding in check(asked):
                contract = CONTRACTS[finding.contract]
                fails = any(contract(scheduler(name), load) for load in loads)
                if finding.verdict != "undecided":
                    assert fails == (finding.verdict == "violated"), (finding, asked.sizes)

    def test_counterexamples_replay(self) -> None:
        """What a finding gives as counterexample breaks its contract when it is run."""
        for name in ("printed", "printed-floor", "rounded-up", "rotated"):
            hops = hop_classes("one:2,two:3", 5)
            for finding in check(SchedulerQuestion(scheduler(name), 5, 3, 7, hops)):
                if finding.verdict == "violated":
                    given_up = finding.counterexample
                    assert given_up is not None
                    counts = given_up["counts"]
                    assert isinstance(counts, tuple)
                    assert (given_up["hops"], given_up["cores"]) == (hops, 3)
                    routing = Routing(counts, hops, 3)
                    assert CONTRACTS[finding.contract](scheduler(name), routing)

    def test_same_question_same_answer(self) -> None:
        """Findings are plain and repeat."""
        question = SchedulerQuestion(scheduler("printed-floor"), 128, 4, 9)
        assert check(question) == check(question)


class TestBadInput:
    """Defined behaviour, or one clear line."""

    def test_zero_tokens(self) -> None:
        """Nobody sends anything, and every contract holds on the only routing there is."""
        routing = Routing((0, 0), ("a", "b"), 3)
        assert [scheduler("printed").sends(core, routing) for core in range(3)] == [()] * 3
        assert all_sends(scheduler("corrected"), routing).core.size == 0
        findings = check(SchedulerQuestion(scheduler("printed"), 2, 3, 0))
        assert {finding.verdict for finding in findings} == {"proved"}

    def test_more_cores_than_tokens(self) -> None:
        """The first cores send one token each, the others none."""
        routing = Routing((1, 1), ("a", "b"), 4)
        sends = [scheduler("corrected").sends(core, routing) for core in range(4)]
        assert sends == [((0, 0),), ((1, 0),), (), ()]

    def test_unsorted_experts(self) -> None:
        """Any order of the list gives the same expert and offset; offsets count in list order."""
        tokens = [2, 0, 2, 1, 0]
        for target in range(5):
            place = find_token(CORRECTED, tokens, target, 3)
            assert place == find_token(CORRECTED, sorted(tokens), target, 3)
        picked = [
            index_of(tokens, find_token(CORRECTED, tokens, t, 3) or Place(9, 9)) for t in range(5)
        ]
        assert picked == sorted(range(5), key=lambda position: tokens[position])

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            (lambda: Routing((1,), ("a",), 0), "0 cores"),
            (lambda: Routing((), (), 1), "no experts"),
            (lambda: Routing((1, -1), ("a", "a"), 1), "expert 1 gets -1 tokens"),
            (lambda: Routing((1, 1, 1), ("a", "a"), 1), "hop classes for 2 ranks, but 3 experts"),
            (lambda: routing_of([0, 5], 2, ("a", "a"), 1), "token 1 goes to expert 5"),
            (lambda: hop_classes("one:3", 4), "cover 3 of 4"),
            (lambda: hop_classes("one:5", 4), "more than the 4"),
            (lambda: hop_classes("one=4", 4), "cannot read"),
            (lambda: scheduler("best"), "no algorithm 'best'"),
            (lambda: find_token(CORRECTED, [0], 1, 1), "target token 1 does not exist"),
            (lambda: find_token(CORRECTED, [3], 0, 2), "token 0 goes to expert 3"),
            (lambda: index_of([0], Place(1, 0)), "expert 1 has no token 0"),
            (lambda: rank_aware_order(4, 4), "rank 4 of 4"),
            (lambda: most_senders_at_once([[1, 1]]), "tiles for 2 of 1 ranks"),
            (lambda: SchedulerQuestion(scheduler("printed"), 4, 0, 1), "0 cores"),
            (lambda: SchedulerQuestion(scheduler("printed"), 4, 1, -1), "-1 tokens"),
            (lambda: SchedulerQuestion(scheduler("printed"), 4, 1, 1, ("a",)), "hop classes for 1"),
            (lambda: aiv_split.Split(4, 4, Fraction(1), aivs=1), "1 AIVs"),
            (lambda: aiv_split.Split(0, 4, Fraction(1)), "nothing to count"),
        ],
    )
    def test_is_one_clear_line(self, wrong: Callable[[], object], message: str) -> None:
        """Each is a ``UserError`` of one line that names what is wrong."""
        with pytest.raises(UserError, match=message) as raised:
            wrong()
        assert "\n" not in str(raised.value)

    def test_z3_is_not_imported_with_the_protocol(self) -> None:
        """Whoever only computes a schedule does not pay for the solver."""
        code = (
            "import sys, syncproof.protocols.token_scheduler_vector, "
            "syncproof.protocols.token_scheduler_ranks; sys.exit('z3' in sys.modules)"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

    def test_picture(self) -> None:
        """The table has a row a core, totals that add up, and marks what exceeds the bound."""
        routing = Routing((3, 1, 4, 2), ("one", "one", "two", "two"), 3)
        rows = hop_table(scheduler("search-only"), routing)
        assert rows[0] == ["core", "one", "two", "all"]
        assert rows[1] == ["0", "3!", "1", "4"]
        assert rows[-2:] == [["all", "4", "6", "10"], ["bound", "2", "2", "4"]]
        fixed = hop_table(scheduler("corrected"), routing)
        assert "!" not in "".join(cell for row in fixed for cell in row)
        assert sum(int(row[1]) for row in fixed[1:4]) == 4
