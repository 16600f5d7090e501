"""What a customer wants."""

from prices import price_of


class Cart(list):
    def total(self):
        return sum(price_of(product) for product in self)


def add(cart, product):
    cart.append(product)
    return cart.total()
