// Package web renders the HTML pages: templates, texts in every language, scripts and styles. All
// files are embedded; there is no build step and no third-party content.
//
// A page is rendered completely before its first byte is sent. It has no inline script or style, so
// the Content-Security-Policy can forbid both. The address of an asset has a hash of all assets, so
// browsers may cache it for ever. The texts are in words/; scripts use the same texts.
//
// The package imports neither gin nor a service: httpapi passes it the data to show.
package web
