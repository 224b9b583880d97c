"""Map-reduce over a folder: each file becomes a record of its own, then code and model make one report of them all.

python examples/map_reduce.py
lmc run examples/map_reduce.py:report folder=examples/data/orders
"""

from pathlib import Path

from pydantic import BaseModel, Field

import lmc

ORDERS = Path(__file__).parent / "data" / "orders"


class Order(BaseModel):
    name: str = Field(min_length=1, max_length=24)
    item: str = Field(min_length=1, max_length=24)
    city: str = Field(min_length=1, max_length=24)
    price: str = Field(min_length=1, max_length=16)


@lmc.tool(effect="reads")
def read_texts(folder: str) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted(Path(folder).glob("*.txt"))]


@lmc.jit
def read_order(s, text: str) -> Order:
    s += lmc.system("You extract fields from text.")
    s += lmc.user(f"Text: {text}\nGive name, item, city, price as JSON.")
    return s.gen("order", schema=Order, max_tokens=80)


@lmc.jit
def report(s, folder: str) -> dict[str, object]:
    orders = [read_order(text) for text in read_texts(folder)]
    if not orders:
        return {"orders": 0}

    total, unclear = 0, []
    for order in orders:
        try:
            total += int(order.price.partition(" ")[0])
        except ValueError:
            unclear.append(order.name)

    cities = [order.city for order in orders]
    s += lmc.system("You combine the work of others.")
    s += lmc.user("Answers:\n" + "\n".join(f"- {city}" for city in cities) + "\nGive the most common answer.")
    busiest = s.select("busiest", sorted(set(cities)))
    return {"orders": len(orders), "total": total, "unclear": unclear, "busiest": busiest}


def main() -> None:
    print(report(str(ORDERS)))


if __name__ == "__main__":
    main()
