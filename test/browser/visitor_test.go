package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// device is a visitor's screen.
type device struct {
	name          string
	width, height int64
	scale         float64
	phone, dark   bool
	still         bool // without animations
	language      string
}

var (
	phone = device{
		name: "phone", width: 360, height: 740, scale: 2, phone: true, language: "en-GB",
	}
	desktop = device{name: "desktop", width: 1280, height: 860, scale: 1, language: "en-GB"}
)

func (d device) at(night bool) device { d.dark = night; return d }

func (d device) in(language string) device { d.language = language; return d }

// hold makes a tab look like the device.
func (d device) hold(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
	scheme := map[bool]string{false: "light", true: "dark"}[d.dark]
	motion := map[bool]string{false: "no-preference", true: "reduce"}[d.still]
	_, err1 := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme},
			{Name: "prefers-reduced-motion", Value: motion},
		},
	})
	screen := emulation.SetDeviceMetricsOverrideParams{
		Width: d.width, Height: d.height, DeviceScaleFactor: d.scale, Mobile: d.phone,
	}
	_, err2 := cdp.Call(ctx, tab, emulation.SetDeviceMetricsOverride, screen)
	touch := emulation.SetTouchEmulationEnabledParams{Enabled: d.phone}
	_, err3 := cdp.Call(ctx, tab, emulation.SetTouchEmulationEnabled, touch)
	_, err4 := cdp.Call(ctx, tab, network.Enable, network.EnableParams{})
	header := network.SetExtraHTTPHeadersParams{
		Headers: network.Headers{"Accept-Language": d.language},
	}
	_, err5 := cdp.Call(ctx, tab, network.SetExtraHTTPHeaders, header)
	return chromedp.Void{}, errors.Join(err1, err2, err3, err4, err5)
}

// patience is how long a visitor waits for a change of the page.
const patience = 60 * time.Second

// visitor is one person with a separate browser profile: cookies are not shared.
type visitor struct {
	t      testing.TB
	ctx    context.Context
	base   string
	device device

	scripts []page.ScriptIdentifier // of before
	altered bool                    // no other visitor may get the tab

	mu      sync.Mutex
	issuer  string   // an origin that pages may lead to; "": none
	faults  []string // violations of the rules of all pages
	offline bool     // the test has cut the network
}

// visit opens an empty profile. The test fails at its end where any page that was opened had a
// fault.
func visit(t testing.TB, base string, d device) *visitor {
	t.Helper()
	p := chrome.profile(t)
	return newTab(p.ctx, t, base, d, func(v *visitor) {
		if !t.Failed() && v.empties(p.ctx) {
			chrome.leave(p)
			return
		}
		p.end()
	})
}

// empties removes what the visitor's pages have stored in the tab, and reports whether it is like a
// new one.
func (v *visitor) empties(tab context.Context) bool {
	if v.altered || v.issuer != "" {
		return false
	}
	ctx, cancel := context.WithTimeout(tab, patience)
	defer cancel()
	return chromedp.Do(ctx,
		chromedp.Navigate(v.base+"/sales"), // no page: its scripts would store something
		chromedp.Evaluate[chromedp.Void](`localStorage.clear(); sessionStorage.clear()`),
		func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
			_, err := cdp.Call(ctx, tab, network.ClearBrowserCookies, cdp.Empty{})
			for _, script := range v.scripts {
				_, failed := cdp.Call(ctx, tab, page.RemoveScriptToEvaluateOnNewDocument,
					page.RemoveScriptToEvaluateOnNewDocumentParams{Identifier: script})
				err = errors.Join(err, failed)
			}
			return chromedp.Void{}, err
		},
	) == nil
}

// secondTab opens another tab of the visitor's profile.
func (v *visitor) secondTab() *visitor {
	v.t.Helper()
	v.altered = true // the second tab may write to the profile while it closes
	ctx, end := chromedp.NewContext(v.ctx)
	return newTab(ctx, v.t, v.base, v.device, func(*visitor) { end() })
}

// newTab opens a tab, which end leaves.
func newTab(
	tab context.Context, t testing.TB, base string, d device, end func(*visitor),
) *visitor {
	t.Helper()
	require.NoError(t, chromedp.Do(tab), "open a tab") // which ends with this context
	ctx, deafen := context.WithCancel(tab)
	v := &visitor{t: t, ctx: ctx, base: base, device: d}
	require.NoError(t, chromedp.Listen(ctx, v.hear))
	v.do(d.hold)
	t.Cleanup(func() {
		if t.Failed() {
			test := strings.ReplaceAll(t.Name(), "/", "-")
			v.keep(filepath.Join(os.TempDir(), "seckill-browser-failed-"+test+"-"+d.name+".png"))
		}
		deafen()
		end(v)
		v.mu.Lock()
		defer v.mu.Unlock()
		for _, fault := range v.faults {
			t.Errorf("%s: %s", d.name, fault)
		}
	})
	return v
}

// hear records violations of the rules of all pages.
func (v *visitor) hear(event any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text, _ := json.Marshal(e.ExceptionDetails)
		v.faults = append(v.faults, "exception: "+string(text))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError ||
			e.Type == runtime.ConsoleAPICalledTypeWarning {
			text, _ := json.Marshal(e.Args)
			v.faults = append(v.faults, "console: "+string(text))
		}
	case *log.EventEntryAdded:
		// The browser logs each refusal of the API as a resource that failed.
		refused := e.Entry.Source == log.EntrySourceNetwork &&
			strings.Contains(e.Entry.Text, "the server responded with a status of 4") ||
			v.offline && strings.Contains(e.Entry.Text, "net::ERR_INTERNET_DISCONNECTED")
		if !refused && (e.Entry.Level == log.EntryLevelError ||
			e.Entry.Level == log.EntryLevelWarning) {
			text := fmt.Sprintf("log: %s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
			v.faults = append(v.faults, text)
		}
	case *network.EventRequestWillBeSent:
		to := e.Request.URL // the browser draws the buttons of its own fields from data: addresses
		if !strings.HasPrefix(to, v.base+"/") && !strings.HasPrefix(to, "data:") &&
			(v.issuer == "" || !strings.HasPrefix(to, v.issuer+"/")) {
			v.faults = append(v.faults, "a request to "+to)
		}
	}
}

// do takes steps that must succeed within patience.
func (v *visitor) do(steps ...chromedp.Action[chromedp.Void]) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		v.t.Helper()
		require.NoError(v.t, err, "the page shows:\n%s", v.text("body"))
	}
}

// open opens a page and waits for its scripts. Navigate may return before a module has run. A click
// before that has no effect.
func (v *visitor) open(path string) {
	v.t.Helper()
	v.do(chromedp.Navigate(v.base + path))
	v.becomes(path+" is loaded", `document.readyState === 'complete'`)
}

// press clicks an element once the page's scripts have run and it can be clicked. A card may move
// to another section meanwhile. press repeats a click that hit another element.
func (v *visitor) press(selector string) {
	v.t.Helper()
	v.becomes(selector+" can be pressed", fmt.Sprintf(`document.readyState === 'complete' &&
		(e => e && !e.disabled && e.ariaDisabled !== "true" && e.checkVisibility() &&
			(e.scrollIntoView({block: 'center', behavior: 'instant'}), true)
		)(document.querySelector(%q))`, selector))
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	err := errors.New("not tried")
	for err != nil && ctx.Err() == nil {
		v.run(fmt.Sprintf(`window.hit = false; document.addEventListener('click',
			(e) => { window.hit = e.target.closest(%q) !== null; },
			{capture: true, once: true})`, selector))
		err = chromedp.Do(ctx, chromedp.Click(chromedp.CSS(selector)))
		if err == nil && v.is(`window.hit === false`) { // another page has no window.hit
			err = errors.New("the click went elsewhere")
		}
	}
	require.NoError(v.t, err, "press %s; the page shows:\n%s", selector, v.text("body"))
}

// fill waits for a field, writes into it, and sends the events that a user's input causes.
func (v *visitor) fill(selector, text string) {
	v.t.Helper()
	v.becomes(selector+" is there", fmt.Sprintf(
		`document.readyState === 'complete' && document.querySelector(%q) !== null`, selector))
	v.run(fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		e.value = %q;
		for (const name of ['input', 'change']) e.dispatchEvent(new Event(name, {bubbles: true}));
	})()`, selector, text))
}

// key presses a key of the keyboard.
func (v *visitor) key(key string) {
	v.t.Helper()
	v.do(chromedp.KeyEvent(key))
}

// tabs presses the Tab key until an element has the focus. A browser drops keys that come before
// the page's first paint.
func (v *visitor) tabs(selector string) {
	v.t.Helper()
	v.becomes("painted", `performance.getEntriesByType('paint').length > 0`)
	var seen []string
	focused := fmt.Sprintf(`document.activeElement === document.querySelector(%q)`, selector)
	for deadline := time.Now().Add(patience); !v.is(focused); {
		if time.Now().After(deadline) {
			v.t.Fatalf("the Tab key never reached %s, but %q", selector, seen)
		}
		v.key("\t")
		seen = append(seen,
			ask[string](v, `(document.activeElement?.outerHTML ?? '').slice(0, 60)`))
	}
}

// before installs a script that every later page runs before its own.
func (v *visitor) before(script string) {
	v.t.Helper()
	v.do(func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		early := page.AddScriptToEvaluateOnNewDocumentParams{Source: script}
		added, err := cdp.Call(ctx, tab, page.AddScriptToEvaluateOnNewDocument, early)
		v.scripts = append(v.scripts, added.Identifier)
		return chromedp.Void{}, err
	})
}

// alter takes a step after which no other visitor gets the tab.
func (v *visitor) alter(step chromedp.Action[chromedp.Void]) {
	v.t.Helper()
	v.altered = true
	v.do(step)
}

// cutOff cuts the visitor's tab off from the network, or connects it again.
func (v *visitor) cutOff(offline bool) {
	v.t.Helper()
	v.mu.Lock()
	v.offline = v.offline || offline // the log of the last failed call may come later
	v.mu.Unlock()
	v.alter(func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		rule := &network.Conditions{Offline: offline, DownloadThroughput: -1, UploadThroughput: -1}
		_, err1 := cdp.Call(ctx, tab, network.EmulateNetworkConditionsByRule,
			network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: []*network.Conditions{rule}})
		_, err2 := cdp.Call(ctx, tab, network.OverrideNetworkState, network.OverrideNetworkStateParams{
			Offline: offline, DownloadThroughput: -1, UploadThroughput: -1,
		})
		return chromedp.Void{}, errors.Join(err1, err2)
	})
}

// sleeps stops all scripts of the visitor's tab, as a phone in a pocket does, or resumes them.
func (v *visitor) sleeps(asleep bool) {
	v.t.Helper()
	state := map[bool]page.SetWebLifecycleStateState{
		true: page.SetWebLifecycleStateStateFrozen, false: page.SetWebLifecycleStateStateActive,
	}[asleep]
	v.alter(func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, page.SetWebLifecycleState,
			page.SetWebLifecycleStateParams{State: state})
		if err == nil && !asleep {
			_, err = cdp.Call(ctx, tab, page.BringToFront, cdp.Empty{})
		}
		return chromedp.Void{}, err
	})
}

// text returns the visible text of an element, or "" where there is none.
func (v *visitor) text(selector string) string {
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	script := fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ''`, selector)
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](script))
	return text
}

// sees waits until an element shows a text.
func (v *visitor) sees(selector, text string) {
	v.t.Helper()
	v.becomes(fmt.Sprintf("%s shows %q", selector, text),
		fmt.Sprintf(`document.querySelector(%q)?.innerText.includes(%q)`, selector, text))
}

// run runs a script in the page.
func (v *visitor) run(script string) {
	v.t.Helper()
	v.do(chromedp.Evaluate[chromedp.Void](script, chromedp.EvalAwaitPromise))
}

// ask runs a script in the page and returns its result.
func ask[T any](v *visitor, script string) T {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	evaluate := chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise)
	return must.Get(chromedp.Run(ctx, evaluate))(v.t, script)
}

// is reports whether a script returns true. It is false while the visitor leaves the page.
func (v *visitor) is(script string) bool {
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	said, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+script+")"))
	return err == nil && said
}

// becomes waits until a script returns true. It asks less often the longer that takes: a question
// costs the browser and the race detector some milliseconds, which other tests lack.
func (v *visitor) becomes(what, script string) {
	v.t.Helper()
	pause := 20 * time.Millisecond
	for deadline := time.Now().Add(patience); !v.is(script); time.Sleep(pause) {
		if time.Now().After(deadline) {
			v.t.Fatalf("timed out waiting for %q; the page shows:\n%s", what, v.text("body"))
		}
		pause = min(pause*3/2, 150*time.Millisecond)
	}
}

// shot saves a screenshot of the README if screenshots are wanted.
func (v *visitor) shot(name string) {
	v.t.Helper()
	if *shots != "" {
		v.run(`document.activeElement?.blur();
			for (const a of document.getAnimations()) {
				try { a.finish(); } catch { /* it never ends */ }
			}`)
		v.keep(filepath.Join(*shots, name+".png"))
	}
}

// phoneShot saves a screenshot of the README, from the head of the page on. It does so if
// screenshots are wanted and the visitor has the phone that the README shows.
func (v *visitor) phoneShot(name string) {
	v.t.Helper()
	if *shots == "" || v.device != phone {
		return
	}
	long := v.device
	long.height, long.scale = 920, 1.5
	v.do(long.hold)
	v.run(`scrollTo({top: 0, behavior: 'instant'})`)
	v.shot(name)
	v.do(v.device.hold)
}

func (v *visitor) keep(file string) {
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		v.t.Logf("no picture: %v", err)
		return
	}
	if err := os.WriteFile(file, png, 0o644); err != nil {
		v.t.Logf("no picture: %v", err)
	}
	v.t.Logf("a picture: %s", file)
}
