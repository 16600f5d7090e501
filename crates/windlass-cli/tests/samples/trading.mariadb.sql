-- A trading company as samples for MariaDB and MySQL have it: char(n) keys whose blanks are cut off, mixed-case names,
-- names with a blank, a composite key, mediumblob, float, datetime, tinyint(1), text in another character set, a
-- generated column and a view. One table has a version column, the others have none.
CREATE TABLE Customers (
    CustomerID char(5) NOT NULL PRIMARY KEY, CompanyName varchar(40) NOT NULL, Region varchar(15),
    row_version integer NOT NULL DEFAULT 1
);
CREATE TABLE Categories (
    CategoryID tinyint unsigned NOT NULL PRIMARY KEY, CategoryName varchar(15) CHARACTER SET latin1 NOT NULL,
    Description mediumtext, Picture mediumblob
);
CREATE TABLE Products (
    ProductID integer NOT NULL AUTO_INCREMENT PRIMARY KEY, ProductName varchar(40) NOT NULL,
    CategoryID tinyint unsigned, UnitPrice decimal(10,4) DEFAULT 0, Weight float, Margin double,
    UnitsInStock smallint DEFAULT 0, Discontinued tinyint(1) NOT NULL DEFAULT 0,
    FOREIGN KEY (CategoryID) REFERENCES Categories (CategoryID)
);
CREATE TABLE Orders (
    OrderID integer NOT NULL PRIMARY KEY, CustomerID char(5), OrderDate datetime, ShippedAt timestamp NULL,
    Freight decimal(10,4), ShipName varchar(40), Extra json, KEY (CustomerID),
    FOREIGN KEY (CustomerID) REFERENCES Customers (CustomerID)
);
CREATE TABLE `Order Details` (
    OrderID integer NOT NULL, ProductID integer NOT NULL, UnitPrice decimal(10,4) NOT NULL,
    Quantity smallint NOT NULL, Discount double(8,0) NOT NULL,
    Total decimal(14,4) AS (UnitPrice * Quantity) PERSISTENT, PRIMARY KEY (OrderID, ProductID)
);
CREATE TABLE Notes (Line text);
CREATE VIEW `Order Subtotals` AS SELECT OrderID, sum(Total) AS Subtotal FROM `Order Details` GROUP BY OrderID;

INSERT INTO Customers SELECT concat('C', seq), concat('Company ', seq), IF(seq % 3 = 0, NULL, 'West'), 1 FROM seq_1_to_90;
INSERT INTO Categories SELECT seq, concat('Café ', seq), NULL, x'151c2f00' FROM seq_1_to_8;
INSERT INTO Products (ProductName, CategoryID, UnitPrice, Weight, Margin, UnitsInStock, Discontinued)
SELECT concat('Prøduct ', seq), seq % 8 + 1, seq * 1.1, seq * 0.1, seq / 3, seq % 40, seq % 2 FROM seq_1_to_77;
INSERT INTO Orders SELECT 10000 + seq, concat('C', seq % 90 + 1), '1996-07-04' + INTERVAL (seq % 600) DAY,
    IF(seq % 4 = 0, NULL, '2001-02-03 04:05:06'), seq * 0.37, concat('Ship ''', seq), '{"a": [1, null]}' FROM seq_1_to_830;
INSERT INTO `Order Details` (OrderID, ProductID, UnitPrice, Quantity, Discount)
SELECT 10000 + seq, seq % 77 + 1, seq % 90 + 0.5, seq % 50 + 1, 0.05 FROM seq_1_to_830;
INSERT INTO `Order Details` (OrderID, ProductID, UnitPrice, Quantity, Discount)
SELECT 10000 + seq, (seq + 30) % 77 + 1, seq % 30 + 0.25, seq % 20 + 1, 0 FROM seq_1_to_830;
