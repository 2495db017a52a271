// Package reservation defines what Redis takes for a buyer: the random path that permits one
// attempt, the reservation, the script's verdict on it, and the order line that carries it from
// Redis through RabbitMQ to MySQL.
//
// The package knows neither Redis nor HTTP.
package reservation
