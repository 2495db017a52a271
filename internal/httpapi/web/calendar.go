package web

import (
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

// calendarTime is RFC 5545's form of a time in UTC.
const calendarTime = "20060102T150405Z"

// calendarLine is the most bytes of a line of RFC 5545, without its end.
const calendarLine = 75

// Calendar returns a calendar file (RFC 5545) with one event, the sale, and an alarm five minutes
// before its start. address is that of the sale's page.
func Calendar(s Sale, address string, now time.Time) []byte {
	var out strings.Builder
	for _, line := range []string{
		"BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//flashsale.dev//seckill//EN", "BEGIN:VEVENT",
		"UID:sale-" + s.GoodsID + "@" + hostOf(address),
		"DTSTAMP:" + now.UTC().Format(calendarTime),
		"DTSTART:" + s.starts.UTC().Format(calendarTime),
		"DTEND:" + s.ends.UTC().Format(calendarTime),
		"SUMMARY:" + escapeCalendar(s.Title), "URL:" + address,
		"BEGIN:VALARM", "ACTION:DISPLAY", "TRIGGER:-PT5M",
		"DESCRIPTION:" + escapeCalendar(s.Title), "END:VALARM", "END:VEVENT", "END:VCALENDAR",
	} {
		fold(&out, line)
	}
	return []byte(out.String())
}

// escapeCalendar escapes a text value.
func escapeCalendar(text string) string {
	return strings.NewReplacer(
		`\`, `\\`, ";", `\;`, ",", `\,`, "\r\n", `\n`, "\n", `\n`, "\r", `\n`,
	).Replace(text)
}

// fold writes a line. It divides a long one between characters; a space starts each further part.
func fold(out *strings.Builder, line string) {
	for room := calendarLine; len(line) > room; room = calendarLine - 1 {
		cut := room
		for !utf8.RuneStart(line[cut]) {
			cut--
		}
		out.WriteString(line[:cut] + "\r\n ")
		line = line[cut:]
	}
	out.WriteString(line + "\r\n")
}

// hostOf returns the host of an address. It makes the event's id unique among all shops.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "localhost"
	}
	return u.Hostname()
}
