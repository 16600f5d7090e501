-- A film rental as samples for MariaDB have it: enum, set, year, unsigned keys, timestamps that update themselves, a
-- generated column, a composite key, a blob, bit, a view, and a table whose name has a blank.
CREATE TABLE film (
    film_id smallint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, title varchar(128) NOT NULL, description text,
    release_year year, rental_rate decimal(4,2) NOT NULL DEFAULT 4.99,
    rating enum('G', 'PG', 'PG-13', 'R', 'NC-17') DEFAULT 'G',
    special_features set('Trailers', 'Commentaries', 'Deleted Scenes'), length_hours decimal(6,3) AS (rental_rate / 3) STORED,
    last_update timestamp NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp(),
    row_version integer NOT NULL DEFAULT 1
);
CREATE TABLE staff (
    staff_id tinyint unsigned NOT NULL PRIMARY KEY, first_name varchar(45) NOT NULL, picture blob, active boolean NOT NULL,
    flags bit(8) NOT NULL, starts time, password varchar(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
);
CREATE TABLE film_actor (
    actor_id smallint unsigned NOT NULL, film_id smallint unsigned NOT NULL, last_update datetime(6), PRIMARY KEY (actor_id, film_id)
);
CREATE TABLE `order details` (
    OrderID integer NOT NULL, ProductID integer NOT NULL, UnitPrice decimal(10,4) NOT NULL, Quantity smallint NOT NULL,
    Discount double NOT NULL, PRIMARY KEY (OrderID, ProductID)
);
CREATE TABLE customers (CustomerID char(5) NOT NULL PRIMARY KEY, CompanyName varchar(40) NOT NULL, notes longtext);
CREATE TABLE notes (line text);
CREATE VIEW film_list AS SELECT film_id AS FID, title, rating FROM film;

INSERT INTO film (title, description, release_year, rating, special_features)
SELECT concat('FILM ', seq), IF(seq % 5 = 0, NULL, concat('A Fateful Tale of ', seq)), 1990 + seq % 30,
       elt(seq % 5 + 1, 'G', 'PG', 'PG-13', 'R', 'NC-17'), 'Trailers,Deleted Scenes' FROM seq_1_to_1000;
INSERT INTO staff SELECT seq, concat('Stæff ', seq), x'89504e470d0a', seq % 2, b'10100101', '08:30:00', NULL FROM seq_1_to_20;
INSERT INTO film_actor SELECT seq % 200 + 1, seq, '2020-02-29 12:00:00.123456' FROM seq_1_to_1000;
INSERT INTO `order details` SELECT 10000 + seq, seq % 77 + 1, seq % 90 + 0.0625, seq % 50 + 1, 0.15 FROM seq_1_to_830;
INSERT INTO customers SELECT concat('C', seq), concat('Company ', seq), NULL FROM seq_1_to_90;
