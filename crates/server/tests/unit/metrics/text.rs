use windlass_engine::tally::Observed;
use windlass_server::metrics::text::{Family, Format, Kind, Text};

fn family(name: &'static str, kind: Kind, help: &'static str) -> Family {
    Family { name, kind, help, write: |_, _| () }
}

fn written(format: Format) -> String {
    let mut text = Text::new(format);
    text.family(&family("a", Kind::Counter, "Some")).put(&[("of", "x"), ("by", "y")], 3);
    text.family(&family("b", Kind::Gauge, "More")).put(&[], 0.5);
    let observed = Observed { at_most: vec![(0.1, 1), (1.0, 2)], count: 3, seconds: 2.5 };
    text.family(&family("c", Kind::Histogram, "Long")).histogram(&[("of", "z")], &observed);
    text.end()
}

#[test]
fn families_are_written_as_prometheus_reads_them() {
    let expected = "# TYPE a counter\n# HELP a Some.\na_total{of=\"x\",by=\"y\"} 3\n# TYPE b gauge\n# HELP b More.\nb 0.5\n\
        # TYPE c histogram\n# HELP c Long.\nc_bucket{of=\"z\",le=\"0.1\"} 1\nc_bucket{of=\"z\",le=\"1.0\"} 2\n\
        c_bucket{of=\"z\",le=\"+Inf\"} 3\nc_sum{of=\"z\"} 2.5\nc_count{of=\"z\"} 3\n# EOF\n";
    assert_eq!(written(Format::OpenMetrics), expected);
    // A counter is declared by the name of its samples, and nothing says where the text ends.
    let plain = expected.replace("# TYPE a counter\n# HELP a Some", "# TYPE a_total counter\n# HELP a_total Some");
    assert_eq!(written(Format::Prometheus), plain.replace("# EOF\n", ""));
}
