package httpapi

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/httpapi/params"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/shipping"
	"flashsale.dev/seckill/internal/seckill"
)

// exportPage is how many orders an export holds in memory at once.
const exportPage = 500

// wantsCSV reports whether the client requests a file: by the field format, else by Accept.
func wantsCSV(r *request) bool {
	format := params.OneOf(r.Fields, "format", "", "csv", "json")
	return format == "csv" ||
		format == "" && prefers(r.header, "text/csv")
}

// exportOrders streams a sale's orders, newest first. It is the shipping list, so names and phone
// numbers are complete. A failure breaks the connection, so that the client cannot mistake a part
// of the file for all of it. So does the revocation of the client's API key: a slow client would
// get buyers' data for hours.
//
// Exports of a node take turns, a page each, so that many at once leave the processors to buyers.
// The write of a page, which may wait for a slow client, is not in a turn.
func (a *api) exportOrders(
	r *request, sale seckill.Sale, status order.Status, first []order.Order,
) response {
	return response{stream: func(c *gin.Context) {
		name := "orders-" + strconv.FormatInt(sale.GoodsID, 10) + ".csv"
		c.Header("Content-Type", "text/csv; charset=utf-8; header=present")
		c.Header("Content-Disposition", `attachment; filename="`+name+`"`)
		if c.Request.Method == http.MethodHead { // net/http would discard rows that MySQL has read
			c.Status(http.StatusOK)
			c.Writer.WriteHeaderNow()
			return
		}
		code := a.currency(sale.Details)
		rc := http.NewResponseController(c.Writer)
		ctx, last := c.Request.Context(), ""
		text := bytes.NewBufferString(byteOrderMark)
		w := csv.NewWriter(text) // a buffer returns no errors
		_ = w.Write(exportHeader())
		for page := first; ; {
			err := a.exportTurn(ctx, func() (err error) {
				if last != "" {
					page, err = a.Orders.OfGoods(ctx, r.actor, sale.GoodsID, status, last,
						exportPage)
				}
				for _, o := range page {
					_ = w.Write(a.exportRow(sale, code, o))
				}
				w.Flush()
				return err
			})
			if err != nil || !a.keyIsValid(ctx, r.actor) {
				panic(http.ErrAbortHandler)
			}
			// A file may take longer than a call, so each page gets a write deadline of its own.
			_ = rc.SetWriteDeadline(time.Now().Add(writeDeadline)) // a test's recorder has none
			if _, err := text.WriteTo(c.Writer); err != nil || len(page) < exportPage {
				break
			}
			last = page[len(page)-1].OrderSn
		}
	}}
}

// exportTurn runs the work on a page of an export when it is the export's turn.
func (a *api) exportTurn(ctx context.Context, work func() error) error {
	if err := a.exports.Acquire(ctx, 1); err != nil {
		return err
	}
	defer a.exports.Release(1)
	return work()
}

// byteOrderMark makes a spreadsheet read the file as UTF-8.
const byteOrderMark = "\ufeff"

// exportHeader names the columns. New columns belong at the end, so that programs which read by
// position keep working.
func exportHeader() []string {
	return []string{
		"orderSn", "status", "failureReason", "goodsId", "buyerId", "quantity", "amount",
		"name", "phoneNumber", "createdAt", "payBy", "paidAt", "closedAt",
		"title", "currency", "amountInCurrency", "shippedAt", "carrier", "trackingNumber",
		"shippingName", "shippingPhone", "shippingEmail", "shippingLine1", "shippingLine2",
		"shippingCity", "shippingPostalCode", "shippingCountry", "shippingNote", "email",
	}
}

// exportRow converts an order of a sale.
func (a *api) exportRow(sale seckill.Sale, code string, o order.Order) []string {
	integer := func(n int64) string { return strconv.FormatInt(n, 10) }
	phone, email := a.openContact(o)
	to := a.openAddress(o)
	if to == nil { // the buyer has entered none
		to = new(shipping.Address)
	}
	row := []string{
		o.OrderSn, string(o.Status), string(o.FailureReason),
		cellText(integer(o.GoodsID)), cellText(o.BuyerID), integer(o.Quantity), integer(o.Amount),
		cellText(o.Name), cellText(phone),
		formatTime(o.CreatedAt), formatTime(o.PayBy), formatTime(o.PaidAt), formatTime(o.ClosedAt),
		cellText(sale.Title), code, decimalAmount(o.Amount, code), formatTime(o.ShippedAt),
	}
	for _, text := range []string{
		o.Carrier, o.TrackingNumber, to.Name, to.Phone, to.Email, to.Line1, to.Line2, to.City,
		to.PostalCode, to.Country, to.Note, email,
	} {
		row = append(row, cellText(text))
	}
	return row
}

// formula matches where a spreadsheet would take a text for a formula (OWASP, "CSV injection"): at
// its start, and after a semicolon, at which the spreadsheets of many countries begin a cell. Those
// of East Asia take full-width signs too.
var formula = regexp.MustCompile(`(^|;)([\s"']*[=+@＝＋－＠-]|[\t\r\n])`)

// cellText stops a spreadsheet from changing a text. It would evaluate a formula, round digits
// after the fifteenth, and drop leading zeros.
func cellText(s string) string {
	digits := s != "" && strings.Trim(s, "0123456789") == ""
	if digits && (len(s) > maxSpreadsheetDigits || s[0] == '0') {
		return `="` + s + `"`
	}
	return formula.ReplaceAllString(s, "$1'$2")
}

// maxSpreadsheetDigits is how many digits of a number a spreadsheet keeps.
const maxSpreadsheetDigits = 15

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return event.FormatTime(t)
}

// decimalAmount writes an amount of the smallest unit in units of its currency: 199900 of EUR is
// 1999.00.
func decimalAmount(amount int64, code string) string {
	digits := seckill.CurrencyDigits(code)
	if digits == 0 {
		return strconv.FormatInt(amount, 10)
	}
	unit := int64(math.Pow10(digits))
	return fmt.Sprintf("%d.%0*d", amount/unit, digits, amount%unit)
}
