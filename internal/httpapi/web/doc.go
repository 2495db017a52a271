// Package web is the face of the flash sale: its pages, their words in each language, and what a browser loads beside
// them. Everything is embedded; there is no build step, and nothing comes from elsewhere.
//
// What it promises: a page is rendered whole before its first byte is sent; it holds no script and no style of its own,
// so that the strictest Content-Security-Policy fits (Policy); what a page loads has an address that changes with its
// contents and may be kept for ever. Every word stands in words/, in every language, and scripts read the same words.
//
// It knows neither gin nor a service: httpapi hands it what is to be shown. A Site is safe for concurrent use.
package web
