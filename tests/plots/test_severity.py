from rindices import plots
from tests.plots.tables import doses, labels_of, marks, row_names, subgroups


def test_each_region_is_a_line_with_its_name():
    table = doses(2, 3, names=["a", "b", "c"])
    figure = plots.dose_response(table)
    for pattern, axes in enumerate(figure.axes, start=1):
        lines = [list(line.get_ydata()) for line in axes.lines if len(line.get_xdata()) == 5]
        rows = table[table["pattern"] == pattern]
        # The farthest from zero comes first.
        assert lines == [rows.loc[rows["region"] == name, "mean"].tolist() for name in "cba"]
        assert [text.get_text() for text in axes.texts] == ["c", "b", "a"]
        bars = sorted(tuple(path[:, 1]) for bar in axes.collections for path in bar.get_segments())
        assert bars == sorted(zip(rows["mean_low"], rows["mean_high"], strict=True))
        assert axes.get_title(loc="left") == f"Pattern {pattern} (20 to 100 people per point)"
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()


def test_subgroups_of_the_strongest_regions():
    effects, sizes = subgroups(2, 20, names=[])
    figure = plots.subgroup_dots(effects, sizes, top=4)
    for pattern, axes in enumerate(figure.axes, start=1):
        rows = effects[effects["pattern"] == pattern]
        reach = {name: max(abs(rows.loc[rows["region"] == name, "effect"])) for name in set(rows["region"])}
        names = sorted(reach, key=reach.get)[:-5:-1]
        assert row_names(axes) == names
        markers = {"low": "o", "middle": "s", "high": "^"}
        kept = rows[rows["region"].isin(names)]
        expected = {
            (row.effect, names.index(row.region), markers[row.level], row.q >= 0.05) for row in kept.itertuples()
        }
        assert {(x, round(y), marker, hollow) for x, y, marker, hollow in marks(axes)} == expected
    assert figure.axes[0].get_title(loc="right") == "1,234 low, 1,234 middle, 1,234 high"
    assert figure.axes[1].get_title(loc="right") == "1,234 low, 1,234 middle, 3 high (not tested)"
    assert labels_of(figure) == [f"patients, {level} severity" for level in ("low", "middle", "high")]
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()
