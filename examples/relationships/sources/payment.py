"""How a customer pays."""


class Refused(Exception):
    pass


def pay_by_card(amount):
    if amount > 1000:
        raise Refused(amount)


HANDLERS = {"card": pay_by_card}


def pay(kind, amount):
    HANDLERS[kind](amount)


def pay_twice(kind, amount):
    HANDLERS[kind](amount / 2)
    pay(kind, amount / 2)


def show(amount):
    print(format(amount, ".2f"))
