//! `tamis reproduce`: one document here; `scripts/test` runs them all.

use crate::tool::Folder;

#[test]
fn a_document_is_reproduced_and_kept() {
    let folder = Folder::new();
    let args = ["reproduce", "--quick", "--only", "004", "--json", "-o", "out"];
    let rows = folder.ok(&args);
    let fields = [
        "document",
        "item",
        "row",
        "printed",
        "predicted",
        "measured",
        "checked",
        "low",
        "high",
        "slack",
        "detects",
        "required",
        "compared",
        "verdict",
    ];
    let mut confirmed = 0;
    for row in rows.lines() {
        let row: serde_json::Value = serde_json::from_str(row).expect("a row a line");
        assert!(fields.iter().all(|field| row.get(field).is_some()), "{row}");
        assert_eq!(row["document"], "004");
        let verdict = row["verdict"].as_str().expect("a word");
        let fit = ["reproduced", "erratum", "recomputed", "bounded", "stated"];
        assert!(fit.contains(&verdict), "{row}");
        let compared: Vec<&str> = row["compared"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|one| one.as_str())
            .collect();
        if ["reproduced", "erratum", "recomputed"].contains(&verdict) {
            confirmed += 1;
            assert!(compared.contains(&"measured") || compared.contains(&"checked"), "{row}");
        }
        if ["reproduced", "recomputed"].contains(&verdict) {
            let number = |field: &str| row[field].as_f64().expect("a number");
            assert!(compared.contains(&"predicted"), "{row}");
            assert!(number("detects") <= 1.0001 * number("required"), "{row}");
        }
        assert!(verdict != "erratum" || row["reason"].is_string(), "{row}");
    }
    assert!(confirmed > 100);
    assert!(rows.lines().count() > 100);
    for file in ["out/index.html", "out/REPORT.md", "out/004-figure-1.svg", "out/004-figure-2.svg"]
    {
        assert!(!folder.read(file).is_empty(), "{file}");
    }
    // From what was kept, the same.
    assert_eq!(folder.ok(&args), rows);
    let table = folder.ok(&["reproduce", "--quick", "--only", "004", "-o", "out"]);
    assert!(table.contains("Compressed Bloom filters") && table.ends_with("out/index.html\n"));
    folder.run(&["reproduce", "--only", "005"]).refused(&["005", "000"]);
}
