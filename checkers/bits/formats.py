"""Number formats by their bits, decoded and rounded in plain Python, apart from any solver."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, isnan, nan


@dataclass(frozen=True)
class Format:
    """A number format: sign, ``exponent`` and ``mantissa`` bits; no exponent means an integer.

    ``has_infinity`` is False for FP8 E4M3 of the OCP specification (OFP8): its largest exponent
    holds numbers too, only all ones is NaN, and what overflows becomes NaN.
    """

    name: str
    exponent: int
    mantissa: int
    has_infinity: bool = True

    @property
    def bits(self) -> int:
        """The width."""
        return 1 + self.exponent + self.mantissa

    @property
    def is_integer(self) -> bool:
        """Whether it is a two's complement integer."""
        return not self.exponent

    @property
    def bias(self) -> int:
        """What is subtracted from the exponent's bits."""
        return int(2 ** (self.exponent - 1)) - 1

    def decode(self, pattern: int) -> float:
        """The value of a bit pattern."""
        if self.is_integer:
            return float(pattern - (1 << self.bits) if pattern >> (self.bits - 1) else pattern)
        sign = -1.0 if pattern >> (self.bits - 1) else 1.0
        exponent = pattern >> self.mantissa & ((1 << self.exponent) - 1)
        fraction = pattern & ((1 << self.mantissa) - 1)
        if self.is_special(pattern):
            return sign * inf if self.has_infinity and not fraction else nan
        if not exponent:
            return float(sign * fraction * 2.0 ** (1 - self.bias - self.mantissa))
        whole = (1 << self.mantissa) + fraction
        return float(sign * whole * 2.0 ** (exponent - self.bias - self.mantissa))

    def is_special(self, pattern: int) -> bool:
        """Whether a pattern is an infinity or no number."""
        if self.is_integer:
            return False
        magnitude = pattern & ((1 << (self.bits - 1)) - 1)
        if not self.has_infinity:
            return magnitude == (1 << (self.bits - 1)) - 1
        return magnitude >> self.mantissa == (1 << self.exponent) - 1

    def is_nan(self, pattern: int) -> bool:
        """Whether a pattern is no number."""
        return isnan(self.decode(pattern))

    def is_finite(self, pattern: int) -> bool:
        """Whether a pattern is a number."""
        return not self.is_special(pattern)

    def encode(self, value: Fraction, negative_zero: bool = False) -> int:
        """The pattern of an exact value, rounded to nearest, ties to even; integers wrap."""
        if self.is_integer:
            return int(value) & ((1 << self.bits) - 1)
        sign = (value < 0 or (not value and negative_zero)) << (self.bits - 1)
        size = abs(value)
        if not size:
            return int(sign)
        power = size.numerator.bit_length() - size.denominator.bit_length()
        power -= Fraction(2) ** power > size
        power = max(power, 1 - self.bias)
        units = round(size / Fraction(2) ** (power - self.mantissa))
        # A mantissa that rounds up to the next power of two carries into the exponent by itself
        magnitude = units + ((power + self.bias - 1) << self.mantissa)
        return int(sign) | min(magnitude, self._overflow)

    @property
    def _overflow(self) -> int:
        """Infinity, or NaN where there is none."""
        if not self.has_infinity:
            return (1 << (self.bits - 1)) - 1
        return ((1 << self.exponent) - 1) << self.mantissa

    def same_value(self, one: int, other: int) -> bool:
        """Whether two patterns compare equal as numbers."""
        return self.decode(one) == self.decode(other)

    def flushed(self, pattern: int) -> int:
        """The pattern with a subnormal number flushed to a zero of its sign."""
        exponent = pattern >> self.mantissa & ((1 << self.exponent) - 1)
        return pattern if self.is_integer or exponent else pattern & 1 << (self.bits - 1)

    def text(self, pattern: int) -> str:
        """A pattern with its value."""
        value = self.decode(pattern)
        shown = "NaN" if isnan(value) else f"{value:g}"
        return f"0x{pattern:0{(self.bits + 3) // 4}x} ({shown})"


FORMATS = {
    each.name: each
    for each in (
        Format("bf16", 8, 7),
        Format("fp16", 5, 10),
        Format("fp8-e5m2", 5, 2),
        Format("fp8-e4m3", 4, 3, has_infinity=False),
        Format("int8", 0, 7),
    )
}
