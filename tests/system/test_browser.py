"""The verification page in a real browser (Chromium through its WebDriver interface)."""

import json

import pytest



@pytest.fixture
def issued(channel):
    channel.live.register({}).expect(201)
    return channel.live.certified(seq_from=1, seq_to=1)


@pytest.mark.parametrize("language, found", [
    ("en", "This certification was issued by this service"),
    ("es", "Esta certificación la emitió este servicio")])
def test_a_code_and_a_file_are_looked_up_and_the_file_is_not_sent(service, browse, issued, channel,
                                                                  tmp_path, language, found):
    browser = browse(language)
    browser.open(f"{service.public_url}/verify/{issued['verification_code']}")
    assert found in browser.text() and issued["certification_id"] in browser.text()

    report = channel.live.download(issued["reports"][0]["url"]).expect(200).body
    for name, body, expected in (("report.pdf", report, True), ("other.pdf", report + b" ", False)):
        path = tmp_path / name
        path.write_bytes(body)
        browser.open(f"{service.public_url}/verify")
        browser.type("#file", str(path))
        browser.until(lambda: "sha256=" in browser.url(), "the digest was looked up")
        assert (issued["certification_id"] in browser.text()) is expected


# ---- a file that is sent ----

def hand_in(browser, service, path):
    browser.open(f"{service.public_url}/verify")
    browser.type("#checked", str(path))
    browser.click("form[method=post] button")
    browser.wait_for("section.found, section.missing")


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize("language, valid, invalid, question", [
    ("en", "This archive is valid", "This file is not valid", "What it does not attest"),
    ("es", "Este archivo es válido", "Este fichero no es válido", "Qué no acredita")])
def test_an_archive_is_checked_with_and_without_script(
        service, browse, issued, channel, tmp_path, language, valid, invalid, question, script):
    browser = browse(language, script)
    archive = channel.live.download(issued["evidence_url"]).expect(200).body
    good, damaged = tmp_path / "good.zip", tmp_path / "damaged.zip"
    good.write_bytes(archive)
    damaged.write_bytes(archive[:-100] + bytes([archive[-100] ^ 1]) + archive[-99:])
    hand_in(browser, service, good)
    text = browser.text()
    assert valid in text and question in text and issued["certification_id"] in text
    hand_in(browser, service, damaged)
    assert invalid in browser.text() and question not in browser.text()


# What WCAG 2.2 AA asks of these pages and a program can tell: names (1.3.1, 4.1.2, 2.4.2, 3.1.1),
# headings in order, contrast of text (1.4.3) and of controls (1.4.11), reflow (1.4.10), size of what
# is pressed (2.5.8), a focus that is seen (2.4.7), no two elements of one id.
FAULTS = """
const faults = [];
const say = (what, element) => faults.push(what + ': ' + (element ? element.outerHTML.slice(0, 120) : ''));
const colour = text => {
  const found = text.match(/[\\d.]+/g).map(Number);
  return {rgb: found.slice(0, 3), alpha: found.length > 3 ? found[3] : 1};
};
const luminance = rgb => {
  const [r, g, b] = rgb.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (a, b) => {
  const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
  return (x + 0.05) / (y + 0.05);
};
const behind = element => {
  for (let at = element; at; at = at.parentElement) {
    const found = colour(getComputedStyle(at).backgroundColor);
    if (found.alpha === 1) return found.rgb;
  }
  return [255, 255, 255];
};
const shown = element => element.getClientRects().length > 0;
if (!document.documentElement.lang) say('no language');
if (!document.title) say('no title');
if (document.querySelectorAll('h1').length !== 1) say('not one h1');
if (document.querySelectorAll('main').length !== 1) say('not one main');
let level = 0;
for (const heading of document.querySelectorAll('h1, h2, h3, h4')) {
  const next = Number(heading.tagName[1]);
  if (next > level + 1) say('a heading is left out', heading);
  level = next;
}
const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
if (new Set(ids).size !== ids.length) say('ids twice');
for (const input of document.querySelectorAll('input'))
  if (shown(input) && !input.labels.length) say('no label', input);
for (const button of document.querySelectorAll('button, a'))
  if (!button.textContent.trim()) say('no name', button);
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = texts.nextNode(); node; node = texts.nextNode()) {
  const element = node.parentElement;
  if (!node.data.trim() || !shown(element) || element.closest('script')) continue;
  const style = getComputedStyle(element);
  const size = parseFloat(style.fontSize), bold = Number(style.fontWeight) >= 700;
  const least = size >= 24 || (bold && size >= 18.66) ? 3 : 4.5;
  const found = contrast(colour(style.color).rgb, behind(element));
  if (found < least) say('contrast ' + found.toFixed(2), element);
}
for (const control of document.querySelectorAll('input, button')) {
  if (!shown(control)) continue;
  const edge = colour(getComputedStyle(control).borderTopColor).rgb;
  if (contrast(edge, behind(control.parentElement)) < 3) say('edge', control);
  const box = control.getBoundingClientRect();
  if (box.width < 24 || box.height < 24) say('small', control);
  control.focus({focusVisible: true});
  const style = getComputedStyle(control);
  if (style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 2) say('focus', control);
}
for (const link of document.querySelectorAll('a')) {
  const box = link.getBoundingClientRect();
  if (box.height < 24) say('small', link);
}
if (document.documentElement.scrollWidth > innerWidth) say('wider than the screen: ' + document.documentElement.scrollWidth);
return faults;
"""


@pytest.mark.parametrize("width, scheme", [
    (320, "light"), (1280, "dark"), *(pytest.param(*other, marks=pytest.mark.thorough) for other in ((320, "dark"), (1280, "light")))])
def test_the_pages_can_be_read_by_everybody(service, browse, issued, channel, tmp_path, width, scheme):
    browser = browse("en")
    browser.emulate(width, scheme)
    archive = channel.live.download(issued["evidence_url"]).expect(200).body
    good, damaged = tmp_path / "good.zip", tmp_path / "damaged.zip"
    good.write_bytes(archive)
    damaged.write_bytes(archive[:-1])

    def judge():
        dark = browser.run("return getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
        assert dark == (scheme == "dark")
        assert browser.run(FAULTS) == []
    for path in ("/verify", f"/verify/{issued['verification_code']}", "/verify/SVC-2026-AAAA-AAAA",
                 "/verify?sha256=x", "/", "/docs", "/docs/reference", "/docs/errors"):
        browser.open(service.public_url + path)
        judge()
    for path in (good, damaged):
        hand_in(browser, service, path)
        judge()


def test_the_pages_are_set_in_the_reports_faces(service, browse):
    browser = browse("en")
    browser.open(f"{service.public_url}/verify")
    wanted = {'16px "Noto Sans"', 'bold 16px "Noto Sans"', '16px "Noto Serif"', 'bold 16px "Noto Serif"'}
    for face in wanted:
        loaded = browser.ask("POST", f"{browser.session}/execute/async", {
            "script": "const done = arguments[1]; document.fonts.load(arguments[0], 'Áñ').then("
                      "f => done(f.map(one => one.status)), e => done(String(e)))", "args": [face]})
        assert loaded == ["loaded"], face
