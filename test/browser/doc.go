// Package browser tests the pages in Debian's chromium-headless-shell, on a phone's and a desktop's
// screen. It runs them on standalone and on real servers.
//
// All tests share one chromium and run side by side. Each visitor has its own profile. Three rules
// hold for every page that a test opens: no console error, no request to another host, no violation
// of the Content-Security-Policy.
//
// With -browser.shots=DIR the tests save the screenshots of the README. make shots renews docs/img.
package browser
