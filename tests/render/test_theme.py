from harness.render import theme


def test_the_stylesheet_has_the_colours_of_the_theme_in_both_schemes() -> None:
    light, dark = theme.css_colours("light"), theme.css_colours("dark")
    names = {variable[4:-1]: colour for colour, variable in theme.variables().items()}
    for name, colour in names.items():
        assert name in dark, name
        if colour not in (theme.INK, theme.GRID):
            assert light[name] == colour, name


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast ratio."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_every_line_stands_out_from_its_background() -> None:
    for colours in (theme.css_colours("light"), theme.css_colours("dark")):
        for name, colour in colours.items():
            if name not in ("--tbt-grid", "--tbt-surface", "--tbt-soft"):
                assert contrast(colour, colours["--tbt-surface"]) >= 3, name


def test_each_engine_has_a_colour_a_dash_and_a_name() -> None:
    assert set(theme.ENGINE_COLOUR) == set(theme.ENGINE_NAME) == set(theme.ENGINE_DASH)
    assert len(set(theme.ENGINE_COLOUR.values())) == len(theme.ENGINE_COLOUR)
    assert theme.colour("another") == theme.REFERENCE


def test_colours_become_variables() -> None:
    assert theme.variable("#0072B2") == "var(--tbt-vllm)"
    assert theme.variable(theme.fade("#0072b2", 0.25)) == "var(--tbt-vllm) 0.25"
    assert theme.variable("red") == "red"
