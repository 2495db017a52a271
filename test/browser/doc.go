// Package browser drives the pages as people do: with Debian's chromium, without a window, on a
// phone and at a desktop, against standalone and against real servers.
//
// All tests share one chromium and run side by side; each visitor has a profile of its own. Every
// page that a test opens must keep what all pages promise: no error in the console, no request to
// another host, nothing that the Content-Security-Policy had to stop.
//
// With -browser.shots=DIR the tests keep the pictures that the README shows. make shots renews
// docs/img.
package browser
