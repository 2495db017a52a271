// Package browser drives the pages as people do: with a real browser (Debian's chromium, without a window), on a
// phone and at a desktop, against standalone and against real servers.
//
// Every page that a test opens is held to what all pages promise, whatever the test is about: no error in the console,
// no request to another host, nothing that the Content-Security-Policy had to stop.
//
// With -browser.shots=DIR the tests leave the pictures there that the README shows: make shots renews docs/img.
package browser
