// Package params decodes the fields of one HTTP request strictly.
//
// A field may stand in the path, the query, a form or a JSON body, and only once. Unknown fields,
// repeated fields, broken UTF-8, trailing data and bodies above MaxBody are errors. Members of a
// nested JSON object have dotted names, such as "rate.permitsPerSecond".
//
// Every error is an *apierror.Error with the reason BAD_REQUEST and the names of the fields. A
// handler takes all its values first and then calls Err for the problems.
package params
