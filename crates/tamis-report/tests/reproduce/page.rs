//! The page in a real browser: all figures are there, nothing is wider than the screen, nothing is complained of, nothing is fetched.
//!
//! Chromium runs headless. A copy of the page gets a script that tells what it sees, in a frame as wide as the screen in question, because
//! a window cannot be as narrow as a phone. The page itself forbids scripts and requests by its policy, so that an attempt to fetch
//! anything would be a complaint on the console; names cannot be resolved either.

use std::fs;
use std::path::Path;
use std::process::Command;

use tamis_report::reproduce::Report;

const DESKTOP: u32 = 1280;
const PHONE: u32 = 390;

/// Tells of the page it stands in.
const SCRIPT: &str = r"<script>
const errors = [];
addEventListener('error', event => errors.push('error: ' + (event.message || event.target.outerHTML)), true);
addEventListener('securitypolicyviolation', event => errors.push('refused: ' + event.blockedURI));
addEventListener('load', () => setTimeout(() => {
  const figures = [...document.querySelectorAll('svg')].map(figure => figure.getBoundingClientRect());
  const shown = figures.filter(box => box.width > 100 && box.height > 100 && box.left >= 0 && box.right <= innerWidth);
  const wide = [...document.querySelectorAll('body *')].filter(element => element.getBoundingClientRect().right > innerWidth + 0.5);
  const fetched = performance.getEntriesByType('resource').map(entry => entry.name);
  parent.postMessage([innerWidth, figures.length, shown.length, document.documentElement.scrollWidth - document.documentElement.clientWidth, wide.length, fetched.length, errors.length, errors.join(';')].join(' '), '*');
}, 100));
</script></body>";

/// What the script tells.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    width: u32,
    figures: usize,
    shown: usize,
    overflow: i32,
    wide: usize,
    fetched: usize,
    errors: usize,
    /// Lines that the console was told.
    complaints: Vec<String>,
}

fn browse(page: &Path, flags: &[&str]) -> (String, Vec<String>) {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--v=0"])
        .args(["--virtual-time-budget=5000", "--window-size=1400,1000", "--dump-dom"])
        .args(flags)
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("chromium is installed, as scripts/test does");
    let told = String::from_utf8_lossy(&output.stderr);
    let complaints = told.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned);
    (String::from_utf8_lossy(&output.stdout).into_owned(), complaints.collect())
}

fn look(folder: &Path, page: &str, width: u32) -> Seen {
    // The script is the one thing that the page's policy must let through.
    let policy = "default-src 'none'; ";
    assert!(page.contains(policy));
    let page = page
        .replace(policy, "default-src 'none'; script-src 'unsafe-inline'; ")
        .replace("</body>", SCRIPT);
    fs::write(folder.join("looked-at.html"), page).unwrap();
    let frame = format!(
        "<body><pre id=told></pre><iframe src=looked-at.html width={width} height=900 frameborder=0></iframe>
        <script>addEventListener('message', event => told.textContent = 'told ' + event.data + ' end')</script></body>"
    );
    let path = folder.join(format!("frame-{width}.html"));
    fs::write(&path, frame).unwrap();
    let (shown, complaints) = browse(&path, &[]);
    let told = shown.split("told ").nth(1).and_then(|rest| rest.split(" end").next());
    let told: Vec<&str> = told.unwrap_or_else(|| panic!("no word of {shown}")).split(' ').collect();
    let number = |index: usize| told[index].parse::<f64>().unwrap();
    Seen {
        width: number(0) as u32,
        figures: number(1) as usize,
        shown: number(2) as usize,
        overflow: number(3) as i32,
        wide: number(4) as usize,
        fetched: number(5) as usize,
        errors: number(6) as usize,
        complaints,
    }
}

#[test]
fn the_page_in_a_browser() {
    let report = super::report();
    let folder = tempfile::tempdir().unwrap();
    report.write(folder.path()).unwrap();
    let page = fs::read_to_string(folder.path().join("index.html")).unwrap();
    assert_eq!(report.figures(), 17);
    for width in [DESKTOP, PHONE] {
        let seen = look(folder.path(), &page, width);
        let fine = Seen {
            width,
            figures: report.figures(),
            shown: report.figures(),
            overflow: 0,
            wide: 0,
            fetched: 0,
            errors: 0,
            complaints: Vec::new(),
        };
        assert_eq!(seen, fine);
    }
    // With every table unfolded too.
    let unfolded = page.replace("<details>", "<details open>");
    assert!(unfolded.len() > page.len());
    let seen = look(folder.path(), &unfolded, PHONE);
    assert_eq!((seen.overflow, seen.wide), (0, 0));
    // The page as it is, with the policy that it has.
    let (shown, complaints) = browse(&folder.path().join("index.html"), &[]);
    assert!(shown.contains("Compressed Bloom filters"));
    assert_eq!(complaints, Vec::<String>::new());

    // A page that is not fine is seen not to be.
    let broken = page.replace(
        "</main>",
        "<img src='http://example.org/x.png'><p style='width:3000px'>x</p><script>nothing()</script></main>",
    );
    let seen = look(folder.path(), &broken, PHONE);
    // (Whether the error comes before the one who listens for it, is the browser's choice; the console has it anyway.)
    assert!(seen.overflow > 0 && seen.wide > 0, "{seen:?}");
    let complaint = |about: &str| seen.complaints.iter().any(|one| one.contains(about));
    assert!(
        complaint("nothing is not defined") && complaint("Content Security Policy"),
        "{seen:?}"
    );
    let (_, complaints) = browse(&folder.path().join("looked-at.html"), &[]);
    assert!(!complaints.is_empty());

    files_are_there(report, folder.path());
}

/// The figures and the Markdown.
fn files_are_there(report: &Report, folder: &Path) {
    let markdown = fs::read_to_string(folder.join("REPORT.md")).unwrap();
    let mut figures = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "svg") {
            figures += 1;
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            assert!(markdown.contains(&format!("({name})")), "{name}");
            assert!(fs::read_to_string(&path).unwrap().contains("<title>"), "{name}");
        }
    }
    assert_eq!(figures, report.figures());
    assert!(
        markdown.lines().filter(|line| line.starts_with("| ")).count() >= report.lines().count()
    );
    for address in ["src=\"http", "href=\"http", "@import", "url(http"] {
        assert!(!fs::read_to_string(folder.join("index.html")).unwrap().contains(address));
    }
}
